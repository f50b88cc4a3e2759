"""`python -m tests.peer.differential --seed 1 --configs 500 --records 20`: plays random cases on both and compares."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.peer.differential.accepted import reason_for
from tests.peer.differential.cases import Case, cases
from tests.peer.differential.play import Outcome, Player
from tests.peer.differential.plugins import PLUGIN, built
from tests.peer.differential.report import differences
from tests.peer.differential.wire import Wire
from tests.peer.peers import CONNECT, WHERRY, Peer, together

from wherry.coordinator.dev.errors import PortTakenError
from wherry.coordinator.dev.kafka import EmbeddedKafka

START_TRIES = 3
WAVE = 25
"""Connectors that run side by side; each has a process of its own in Wherry."""
KEPT_LONG = {"log.retention.ms": "-1"}
"""For topics that come into being by themselves: records are of days that are long gone."""


@dataclass(slots=True)
class Findings:
    """What a run has found.

    Attributes:
        played: The first case that was not played.
        records: How many records went through.
        unexplained: Differences without a reason.
        reasons: How often each reason was needed.
    """

    played: int = 0
    records: int = 0
    unexplained: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, connect: Outcome, wherry: Outcome) -> None:
        """Notes how two outcomes differ; prints what has no reason."""
        self.played = case.number + 1
        self.records += len(case.records) + len(case.lines)
        told: set[str] = set()
        for difference in differences(case, connect, wherry):
            reason = reason_for(difference)
            if reason is not None:
                self.reasons[reason] += 1
            elif difference.part not in told:
                told.add(difference.part)
                self.unexplained.append(str(difference))
                print(difference, flush=True)


@contextmanager
def running(bootstrap: str, directory: Path) -> Iterator[dict[str, Player]]:
    """Both systems, ready to play."""
    plugins = {CONNECT: built(directory), WHERRY: PLUGIN}
    # What has failed stays so: a task that is started again by itself shows as running for a moment.
    more = {CONNECT: {}, WHERRY: {"wherry.restart.enabled": "false"}}
    peers = [
        Peer(name, directory / name, bootstrap, settings={"plugin.path": str(path), **more[name]})
        for name, path in plugins.items()
    ]
    wires = {peer.name: Wire(bootstrap) for peer in peers}
    try:
        together(peers, _start)
        yield {peer.name: Player(peer, wires[peer.name]) for peer in peers}
    finally:
        together(peers, lambda peer: peer.stop())
        for wire in wires.values():
            wire.close()


def _start(peer: Peer) -> None:
    """Starts it; on a busy machine somebody else may get the port between its choice and its use."""
    for attempt in range(START_TRIES):
        try:
            peer.start()
            return
        except PortTakenError:
            if attempt == START_TRIES - 1:
                raise


def compare(chosen: list[Case], bootstrap: str, directory: Path, budget_s: float = float("inf")) -> Findings:
    """Plays cases on both, wave by wave, as long as there is time."""
    found, begun = Findings(), time.monotonic()
    with running(bootstrap, directory) as players:
        for wave in _waves(chosen):
            if time.monotonic() - begun > budget_s:
                break
            outcomes: dict[str, dict[int, Outcome]] = {}
            _both(players, wave, outcomes)
            for case in wave:
                found.add(case, outcomes[CONNECT][case.number], outcomes[WHERRY][case.number])
            seconds = time.monotonic() - begun
            print(f"{found.played} played, {len(found.unexplained)} unexplained, {seconds:.0f} s", flush=True)
    return found


def _both(players: dict[str, Player], wave: list[Case], outcomes: dict[str, dict[int, Outcome]]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(players)) as pool:
        futures = {name: pool.submit(player.play, wave) for name, player in players.items()}
        outcomes.update({name: future.result() for name, future in futures.items()})


def _waves(chosen: list[Case]) -> list[list[Case]]:
    return [chosen[first : first + WAVE] for first in range(0, len(chosen), WAVE)]


def main() -> int:
    """Plays, prints the differences, and answers with 1 when one has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--configs", type=int, default=500)
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first case")
    parser.add_argument("--records", type=int, default=20, help="records per configuration")
    parser.add_argument("--budget-s", type=float, default=float("inf"), help="begin no wave later than this")
    parser.add_argument("--plain", action="store_true", help="without transforms: only the converters")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the cases to play")
    parser.add_argument("--keep", help="keep files and logs in this folder")
    parser.add_argument("--log", help="append a line of JSON about this run to this file")
    options = parser.parse_args()
    chosen = [
        case
        for case in cases(options.seed, options.configs, options.records, first=options.first, plain=options.plain)
        if options.only is None or case.number in options.only
    ]
    with tempfile.TemporaryDirectory(prefix="wd-") as temporary, EmbeddedKafka(options=KEPT_LONG) as kafka:
        found = compare(chosen, kafka.bootstrap, Path(options.keep or temporary), options.budget_s)
    print(f"seed {options.seed}, cases {options.first} to {found.played}: {found.records} records")
    for reason, count in found.reasons.most_common():
        print(f"  {count} accepted: {reason}")
    print(f"{len(found.unexplained)} differences without an explanation")
    if options.log:
        told = {"seed": options.seed, "from": options.first, "to": found.played, "records": found.records}
        told |= {"unexplained": len(found.unexplained), "accepted": dict(found.reasons)}
        with Path(options.log).open("a") as log:
            log.write(json.dumps(told) + "\n")
    return 1 if found.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
