"""A leader is killed while a standby is warm: how long until every task moves records again, and who notices.

Two coordinators, `--records` pairs of connectors: a file, its source, a topic, its sink, a file. Every file is written
to all the time; the leader gets SIGKILL in the middle. A pair counts as moving again when a line that was written after
the kill has come out at its other end, so that its source and its sink both go on. The standby is asked all the while.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Self

from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, WHERRY, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.flows.kills import BEFORE_SECONDS, MOVING_SECONDS_MAX, until
from tests.bench.measure import Sampler
from tests.bench.processes import BenchError, ProcessTree
from tests.bench.rest import Rest as BenchRest
from tests.bench.site import Site
from tests.bench.systems import WorkerSettings, wherry_role
from tests.support.distributed import Distributed
from tests.support.pairs import Pair, Traffic, lost_and_repeated, moving_again
from tests.support.rest import NoAnswerError

ASK_SECONDS: Final = 0.05
ASKED: Final = ("/connectors?expand=status&expand=info", "/connectors/out-0/status", "/connectors/in-0/offsets", "/")
_STAMP: Final = re.compile(r"^\[(\S+ \S+)\] INFO (Given|Claimed): this coordinator")

FIGURES = (
    Figure("moving_seconds", "SIGKILL to every task moving", "s", 2, value_max=10.0),
    Figure("first_seconds", "SIGKILL to the first task moving", "s", 2),
    Figure("noticed_seconds", "SIGKILL to the standby being given the lead", "s", 2),
    Figure("claimed_seconds", "then to its forerunner being fenced", "s", 2),
    Figure("started_seconds", "then to every task moving", "s", 2),
    Figure("lost_lines", "lines lost", "lines", 0, value_max=0.0),
    Figure("repeated_lines", "lines repeated", "lines", 0),
    Figure("failed_reads", "reads failed on the standby", "requests", 0, value_max=0.0),
    Figure("slowest_read_ms", "slowest read on the standby", "ms", 0),
    OTHER_CPU,
)


class _Asker:
    """Reads from the standby all the time."""

    def __init__(self, member: Distributed) -> None:
        self._rest = member.rest
        self.failures: list[str] = []
        self.slowest_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(ASK_SECONDS):
            for path in ASKED:
                began = time.monotonic()
                try:
                    answer = self._rest.call("GET", path, timeout_s=limits.REST_TIMEOUT_SECONDS)
                    failure = "" if answer.status == 200 else f"{path}: {answer.status} {answer.body}"
                except NoAnswerError as error:
                    failure = str(error)
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                if failure:
                    self.failures.append(failure)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Kills one leader; `records` is the number of pairs."""
    if name != WHERRY:
        raise BenchError("Kafka Connect holds the work of a lost worker back for minutes; only Wherry is measured.")
    pairs = [Pair(site.directory, "leader-kill", label, number) for number in range(records)]
    for pair in pairs:
        load.create_topic(site.bootstrap, pair.topic, 1)
    settings = {"offset.flush.interval.ms": "1000"}
    members = [Distributed(bootstrap=site.bootstrap, group=f"leader-kill-{label}", settings=settings) for _ in range(2)]
    try:
        for member in members:
            member.start()
            until(member.rest.is_healthy, limits.SYSTEM_START_SECONDS, "a coordinator is healthy", member)
            until(lambda member=member: "is up after" in member.log_path.read_text(), 60, "Spark is up", member)  # type: ignore[misc]
        leader, standby = members
        rest = BenchRest(leader.rest.url)
        for pair in pairs:
            pair.write()
            for connector, config in pair.connectors.items():
                rest.create(connector, config)
        for pair in pairs:
            for connector in pair.connectors:
                rest.wait_running(connector, 1)
        until(lambda: all(pair.last() >= 0 for pair in pairs), limits.STALL_SECONDS, "every pair moves", leader)
        return _kill(pairs, leader, standby)
    finally:
        for member in members:
            member.close()


def _kill(pairs: Sequence[Pair], leader: Distributed, standby: Distributed) -> Outcome:
    system = ProcessTree(standby.pid, wherry_role)
    with _Asker(standby) as asker, Sampler({"system": system}) as sampler:
        with Traffic(pairs):
            time.sleep(BEFORE_SECONDS)
            leader.kill()
            killed_at = time.time()
            moved = moving_again(pairs, lambda true: until(true, MOVING_SECONDS_MAX, "every task moves again", standby))
            moving_at = time.time()
            time.sleep(BEFORE_SECONDS)
        until(
            lambda: all(pair.last() == pair.sent - 1 for pair in pairs), limits.STALL_SECONDS, "all has come", standby
        )
    lost, repeated = lost_and_repeated(pairs)
    given, claimed = (_logged(standby, word) - killed_at for word in ("Given", "Claimed"))
    moving = max(moved.values())
    return Outcome(
        {
            "moving_seconds": moving,
            "first_seconds": min(moved.values()),
            "noticed_seconds": given,
            "claimed_seconds": claimed - given,
            "started_seconds": moving - claimed,
            "lost_lines": lost,
            "repeated_lines": repeated,
            "failed_reads": len(asker.failures),
            "slowest_read_ms": asker.slowest_s * 1000,
            "other_cpu_percent": sampler.other_cpu_percent(killed_at, moving_at),
        },
        {"moved_seconds": moved, "failures": asker.failures[:10], "log": standby.log_tail()},
    )


def _logged(member: Distributed, word: str) -> float:
    """When a line of its log was written, the last of those that begin so."""
    stamps = [found[1] for line in member.log_path.read_text().splitlines() if (found := _STAMP.match(line))
              and found[2] == word]  # fmt: skip
    if not stamps:
        raise BenchError(f"The standby never logged {word!r}; the end of its log:\n{member.log_tail()}")
    return datetime.strptime(stamps[-1], "%Y-%m-%d %H:%M:%S,%f").timestamp()


FLOW = Flow(
    name="leader-kill",
    summary="the leader of two coordinators is killed, the other one is warm (Wherry alone)",
    figures=FIGURES,
    records=3,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
    systems=(WHERRY,),
)
