"""`python -m tests.peer.differential --seed 1 --configs 500 --records 20`: plays random cases on both and compares."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.peer.differential.accepted import reason_for
from tests.peer.differential.cases import Case, cases
from tests.peer.differential.play import Outcome, play
from tests.peer.differential.report import differences
from tests.peer.peers import CONNECT, WHERRY, Peer, together

from wherry.coordinator.dev.kafka import EmbeddedKafka

WAVE = 20
"""Connectors that run side by side; each has a process of its own in Wherry."""


def compare(chosen: list[Case], bootstrap: str, directory: Path) -> tuple[list[str], Counter[str]]:
    """Plays cases on both; returns the differences without a reason, and how often each reason was needed."""
    peers = [Peer(name, directory / name, bootstrap) for name in (CONNECT, WHERRY)]
    unexplained: list[str] = []
    reasons: Counter[str] = Counter()
    try:
        together(peers, lambda peer: peer.start())
        for wave in _waves(chosen):
            outcomes = _played(peers, wave)
            for case in wave:
                both = outcomes[CONNECT][case.number], outcomes[WHERRY][case.number]
                told: set[str] = set()
                for difference in differences(case, *both):
                    reason = reason_for(difference)
                    if reason is not None:
                        reasons[reason] += 1
                    elif difference.part not in told:
                        told.add(difference.part)
                        unexplained.append(str(difference))
                        print(difference, flush=True)
            print(f"{wave[-1].number + 1} cases played, {len(unexplained)} differences unexplained", flush=True)
    finally:
        for peer in peers:
            peer.stop()
    return unexplained, reasons


def _played(peers: list[Peer], wave: list[Case]) -> dict[str, dict[int, Outcome]]:
    outcomes: dict[str, dict[int, Outcome]] = {}
    together(peers, lambda peer: outcomes.update({peer.name: play(peer, wave)}))
    return outcomes


def _waves(chosen: list[Case]) -> list[list[Case]]:
    return [chosen[first : first + WAVE] for first in range(0, len(chosen), WAVE)]


def main() -> int:
    """Plays, prints the differences, and answers with 1 when one has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--configs", type=int, default=500)
    parser.add_argument("--records", type=int, default=20, help="records per configuration")
    parser.add_argument("--plain", action="store_true", help="without transforms: only the converters")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the cases to play")
    parser.add_argument("--keep", help="keep files and logs in this folder")
    options = parser.parse_args()
    chosen = [
        case
        for case in cases(options.seed, options.configs, options.records, plain=options.plain)
        if options.only is None or case.number in options.only
    ]
    with tempfile.TemporaryDirectory(prefix="wd-") as temporary, EmbeddedKafka() as kafka:
        unexplained, reasons = compare(chosen, kafka.bootstrap, Path(options.keep or temporary))
    sent = sum(len(case.records) + len(case.lines) for case in chosen)
    print(f"seed {options.seed}: {sent} records through {len(chosen)} configurations")
    for reason, count in reasons.most_common():
        print(f"  {count} accepted: {reason}")
    print(f"{len(unexplained)} differences without an explanation")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
