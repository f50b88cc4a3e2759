"""`python -m tests.chaos.long --minutes 8`: whatever may die dies, again and again, while flows run exactly once.

Sources in the three kinds of transaction and sinks of the three classes go on under random faults; a reader of
committed records, the tables and the files then tell what was lost, came twice or out of order.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.flows import Flow, KafkaToFile, KafkaToPostgres, KafkaToStaged, KafkaToTable
from tests.chaos.sources import HURRYING, Counted, Spooled
from tests.chaos.verdict import Verdict, judge
from tests.support.distributed import Distributed
from tests.support.rest import NoAnswerError, Rest
from tests.support.standalone import send
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.postgres import LocalPostgres

PLUGINS = (Path(__file__).with_name("plugin"), Path(__file__).parents[1] / "integration" / "plugins" / "staging")
RATE = 400
"""Records a second and flow: enough to have some under way always, little enough to leave the machine alone."""
FAULT_EVERY_S = (2.0, 7.0)
DOWN_S = (0.5, 5.0)
FROZEN_S = (2.0, 14.0)
START_S = 120.0
STALL_S = 150.0
POLL_S = 0.2
LOST = "likely deleted already and hence can be skipped"
SUPPORT = "exactly.once.source.support"
ROLLED = ("disabled", "preparing", "enabled")
FAULTS = ("worker", "worker", "sidecar", "sidecar", "host", "coordinator", "broker", "freeze")


@dataclass(slots=True)
class Chaos:
    """One long run: the system, what runs in it, and what happens to it."""

    members: list[Distributed]
    broker: EmbeddedKafka
    flows: list[Flow]
    dice: random.Random
    kinds: tuple[str, ...]
    done: Counter[str] = field(default_factory=Counter)
    timers: list[threading.Timer] = field(default_factory=list)

    def rest(self) -> Rest:
        """The API of a member that answers."""
        for _ in range(int(START_S / POLL_S)):
            for member in self.members:
                if member.rest.answers():
                    return member.rest
            time.sleep(POLL_S)
        raise AssertionError(f"no coordinator answers:\n{self.members[0].log_tail()}")

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Creates or changes a connector; what is refused for a fault that just came is sent again."""
        path, told = f"/connectors/{name}/config", ""
        for _ in range(int(START_S / POLL_S)):
            try:
                answer = self.rest().call("PUT", path, dict(config))
            except NoAnswerError as error:
                told = str(error)
            else:
                if answer.status in (200, 201):
                    return
                told = f"{answer.status} {answer.body}"
                assert answer.status == 409 or answer.status >= 500, f"{name} was refused: {told}"
            time.sleep(POLL_S)
        raise AssertionError(f"{name} was refused for {START_S:.0f} s, at last with {told}")

    def hurt(self) -> str:
        """Lets one random fault come; tells which."""
        kind = self.dice.choice(self.kinds)
        faults: Mapping[str, Callable[[], str]] = {
            "worker": self._worker, "sidecar": self._sidecar, "host": self._host, "coordinator": self._coordinator,
            "broker": self._broker, "freeze": self._freeze,
        }  # fmt: skip
        try:
            told = faults[kind]()
        except (NoAnswerError, AssertionError, KeyError, IndexError) as error:
            return f"{kind} could not be hurt: {str(error)[:80]!r}"  # it is down already, or not up yet
        self.done[kind] += 1
        return told

    def _pids(self, connector: str, what: str) -> list[int]:
        rest = self.rest()
        if what == "sidecars":
            listed = rest.get("/wherry/v1/sidecars")["sidecars"]
            return [int(each["pid"]) for each in listed if each["connector"] == connector]
        leases = rest.get("/wherry/v1/leases")["leases"]
        found = [each["worker"].rpartition(":")[2] for each in leases if each["connector"] == connector]
        return [int(pid) for pid in found if pid]  # a lease that is only just handed out has no worker yet

    def _worker(self) -> str:
        flow = self.dice.choice(self.flows)
        pid = self.dice.choice(self._pids(flow.name, "leases"))
        send(pid, signal.SIGKILL)
        return f"killed a worker of {flow.name}"

    def _sidecar(self) -> str:
        flow = self.dice.choice(self.flows)
        send(self.dice.choice(self._pids(flow.name, "sidecars")), signal.SIGKILL)
        return f"killed a sidecar of {flow.name}"

    def _host(self) -> str:
        hosts = [process for member in self.members for process in member.processes("host")]
        send(self.dice.choice(hosts).pid, signal.SIGKILL)
        return "killed a sidecar host"

    def _coordinator(self) -> str:
        member = self.dice.choice(self.members)
        member.kill()
        down = self.dice.uniform(*DOWN_S)
        time.sleep(down)
        member.start()
        return f"killed coordinator {self.members.index(member)}, away for {down:.1f} s"

    def _broker(self) -> str:
        self.broker.kill()
        down = self.dice.uniform(*DOWN_S)
        time.sleep(down)
        self.broker.start()
        return f"killed the broker, away for {down:.1f} s"

    def _freeze(self) -> str:
        flow = self.dice.choice(self.flows)
        pid = self.dice.choice(self._pids(flow.name, "leases"))
        send(pid, signal.SIGSTOP)
        frozen = self.dice.uniform(*FROZEN_S)
        timer = threading.Timer(frozen, send, (pid, signal.SIGCONT))
        timer.daemon = True
        timer.start()
        self.timers.append(timer)
        return f"froze a worker of {flow.name} for {frozen:.1f} s"

    def wait(self, totals: Mapping[str, int]) -> None:
        """Waits until everything has arrived, as long as something moves."""
        for timer in self.timers:
            timer.join(max(FROZEN_S))
        moved_at, seen = time.monotonic(), -1
        while time.monotonic() - moved_at < STALL_S:
            delivered = {flow.name: flow.delivered() for flow in self.flows}
            if all(delivered[name] >= total for name, total in totals.items()):
                return
            if sum(delivered.values()) != seen:
                moved_at, seen = time.monotonic(), sum(delivered.values())
            time.sleep(POLL_S)
        print(f"nothing has moved for {STALL_S:.0f} s: {delivered} of {dict(totals)}\n{self.states()}", flush=True)

    def lost_ends(self) -> list[str]:
        """What the broker says of transactions that it has ended without telling their partitions.

        It does so when it comes back from a SIGKILL and its partitions have no leader for a moment; what reads
        committed records stands behind these transactions for good, whoever it is.
        """
        with contextlib.suppress(OSError):
            return [line for line in self.broker.log_path.read_text("utf-8", "replace").splitlines() if LOST in line]
        return []

    def states(self) -> str:
        """What each connector shows."""
        rest = self.rest()
        return "\n".join(str(rest.call("GET", f"/connectors/{flow.name}/status").body)[:1500] for flow in self.flows)


def verdicts(flows: list[Flow], each: int) -> list[str]:
    """Judges every flow, printing a line about each; returns what is not as promised."""
    wrong: list[str] = []
    for flow in flows:
        total = each // flow.partitions
        for partition, numbers in flow.arrived().items():
            verdict: Verdict = judge(numbers, total)
            sound = not verdict.lost and not verdict.disordered and not (flow.exactly_once and verdict.duplicates)
            print(f"{'sound' if sound else 'WRONG'}: {flow.name}[{partition}] {len(numbers)} of {total}, {verdict}")
            if not sound:
                wrong.append(f"{flow.name}[{partition}]: {verdict}")
    return wrong


def _feed(flows: list[Flow], each: int, ending: threading.Event) -> None:
    """Hands records over at a steady pace; a broker that is away makes the client wait, not us."""
    begun, fed = time.monotonic(), dict.fromkeys((flow.name for flow in flows), 0)
    while any(fed[flow.name] < each // flow.partitions for flow in flows) and not ending.wait(0.05):
        for flow in flows:
            upto = min(each, int((time.monotonic() - begun) * RATE)) // flow.partitions
            flow.feed(fed[flow.name], upto)
            fed[flow.name] = max(fed[flow.name], upto)


def _flows(bootstrap: str, postgres: LocalPostgres, folder: Path, each: int, wanted: set[str]) -> list[Flow]:
    mark = uuid.uuid4().hex[:6]
    makers: Mapping[str, Callable[[], Flow]] = {
        **{kind: lambda kind=kind: Counted(kind, bootstrap, each) for kind in ("poll", "interval", "connector")},
        "spool": lambda: Spooled(bootstrap, folder, each),
        "file": lambda: KafkaToFile(f"kafka-file-{mark}", bootstrap, folder),
        "postgres": lambda: KafkaToPostgres(f"kafka-postgres-{mark}", bootstrap, postgres),
        "staged": lambda: KafkaToStaged(f"kafka-staged-{mark}", bootstrap, folder),
        "table": lambda: KafkaToTable(f"kafka-table-{mark}", bootstrap, folder),
    }
    return [make() for name, make in makers.items() if name in wanted]


def run(options: argparse.Namespace) -> list[str]:
    """One run; returns what is not as promised."""
    dice, each = random.Random(options.seed), int(options.minutes * 60 * RATE)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wc-")))
        broker = stack.enter_context(EmbeddedKafka())
        postgres = stack.enter_context(LocalPostgres(options={"fsync": "off"}))
        flows = _flows(broker.bootstrap, postgres, folder, each, set(options.flows.split(",")))
        for flow in flows:
            stack.callback(flow.close)
        settings = {
            SUPPORT: ROLLED[0] if options.rolling else ROLLED[-1],
            "offset.flush.interval.ms": "500",
            "plugin.path": ",".join(map(str, PLUGINS)),
        }
        group = f"chaos-{uuid.uuid4().hex[:6]}"
        members = [
            Distributed(bootstrap=broker.bootstrap, group=group, settings=settings) for _ in range(options.coordinators)
        ]
        chaos = Chaos(members, broker, flows, dice, tuple(options.faults.split(",")))
        for member in members:
            stack.callback(_close, member, options.keep)
            member.start()
            assert eventually(member.rest.is_healthy, START_S), member.log_tail()
        for flow in flows:
            chaos.put(flow.name, flow.config())
        assert eventually(lambda: all(flow.delivered() for flow in flows if isinstance(flow, Counted)), START_S), (
            f"{chaos.states()}\n{members[0].log_tail()}"
        )
        ending = threading.Event()
        stack.callback(ending.set)
        feeding = threading.Thread(target=_feed, args=(flows, each, ending), daemon=True)
        feeding.start()
        if options.rolling:
            _roll(chaos, options.minutes * 60)
        else:
            _hurt_for(chaos, options.minutes * 60)
        for flow in flows:
            if isinstance(flow, Counted):
                chaos.put(flow.name, {**flow.config(), **HURRYING})  # what it could not give meanwhile
        feeding.join(STALL_S)
        chaos.wait({flow.name: each // flow.partitions * flow.partitions for flow in flows})
        print(f"seed {options.seed}, {each} records a flow, faults: {dict(chaos.done)}", flush=True)
        wrong = verdicts(flows, each)
        return wrong + [f"perhaps through the broker: {line}" for line in chaos.lost_ends()] if wrong else []


def _hurt_for(chaos: Chaos, seconds: float) -> None:
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        time.sleep(chaos.dice.uniform(*FAULT_EVERY_S))
        told = chaos.hurt()
        delivered = " ".join(str(flow.delivered()) for flow in chaos.flows)
        print(f"{passed:5.0f} s: {told}; {delivered}", flush=True)


def _roll(chaos: Chaos, seconds: float) -> None:
    """Brings exactly-once support up, member by member, as operators do; whatever stops does so cleanly."""
    pause_s = seconds / (len(ROLLED) * len(chaos.members))
    for support in ROLLED[1:]:
        for member in chaos.members:
            time.sleep(pause_s)
            member.stop()
            member.change({SUPPORT: support})
            member.start()
            chaos.done[support] += 1
            delivered = " ".join(str(flow.delivered()) for flow in chaos.flows)
            print(f"coordinator {chaos.members.index(member)} is {support}; {delivered}", flush=True)


def _close(member: Distributed, keep: str | None) -> None:
    if keep is not None:
        with contextlib.suppress(OSError):
            target = Path(keep) / f"{member.rest.url.rpartition(':')[2]}.log"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(member.log_path.read_bytes())
    member.close()


def main(arguments: Any = None) -> int:
    """Runs, and answers with 1 when something is not as promised."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.long", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults come")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--coordinators", type=int, default=1)
    parser.add_argument(
        "--faults", default=",".join(FAULTS), help="kinds of faults; one named twice comes twice as often"
    )
    parser.add_argument("--flows", default="poll,interval,connector,spool,file,postgres,staged,table")
    parser.add_argument("--rolling", action="store_true", help="no faults: support goes from disabled to enabled")
    parser.add_argument("--keep", help="folder for the logs")
    wrong = run(parser.parse_args(arguments))
    print("\n".join(wrong) or "everything is as promised")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
