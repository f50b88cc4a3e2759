"""`python -m tests.peer.walks --seed 1 --walks 200`: plays random walks on both and compares."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.peer.peers import CLUSTER, CONNECT, Peer, together
from tests.peer.walks.draw import Walk, walks
from tests.peer.walks.play import Finding, Played, Stage, keep, play_all

from wherry.coordinator.dev.kafka import EmbeddedKafka

SIDE_BY_SIDE = 8
ALONE = 2
WAVE = 32
"""Walks whose topics are made together."""
AGAIN = "again"
PROVIDERS = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
# What has failed stays so: a task that is started again by itself shows as running for a moment.
OURS = {"wherry.restart.enabled": "false"}


@dataclass(slots=True)
class Told:
    """What a run has found.

    Attributes:
        walks: How many walks were played.
        steps: Their steps.
        findings: What has no explanation, twice.
        passing: What has none, but was not there when the walk was played again, by itself.
        reasons: How often each reason was needed.
        parted: How many walks ended early for a reason.
    """

    walks: int = 0
    steps: int = 0
    findings: list[Finding] = field(default_factory=list)
    passing: list[Finding] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    parted: int = 0

    def add(self, played: Played) -> None:
        """Count a walk that was played."""
        self.walks += 1
        self.steps += played.steps
        self.reasons += played.reasons
        self.parted += played.parted


@contextmanager
def stage(bootstrap: str, directory: Path) -> Iterator[Stage]:
    """Both systems, started."""
    connect = Peer(CONNECT, directory / CONNECT, bootstrap, distributed=True, settings=PROVIDERS)
    wherry = Peer(CLUSTER, directory / CLUSTER, bootstrap, settings={**PROVIDERS, **OURS})
    peers = (connect, wherry)
    try:
        together(peers, lambda peer: peer.start())
        with Stage(connect, wherry) as running:
            yield running
    finally:
        together(peers, lambda peer: peer.stop())


def compare(
    running: Stage,
    chosen: Sequence[Walk],
    again: Sequence[Walk],
    *,
    side_by_side: int = SIDE_BY_SIDE,
    kept: Path | None = None,
) -> Told:
    """Play walks on both, and those with findings once more, by themselves: on a busy machine some are of its making.

    Args:
        running: Both systems.
        chosen: The walks.
        again: The same walks, with other names.
        side_by_side: How many are played at a time.
        kept: Where to write down what was done and answered.
    """
    told, begun = Told(), time.monotonic()
    for first in range(0, len(chosen), WAVE):
        doubtful: list[Walk] = []
        for index, (walk, played) in enumerate(play_all(running, chosen[first : first + WAVE], side_by_side)):
            told.add(played)
            if played.findings:
                doubtful.append(again[first + index])
                told.passing += played.findings
                print("\n".join(map(str, played.findings)), flush=True)
            if kept is not None:
                keep(played, walk, kept)
        for walk, played in play_all(running, doubtful, ALONE):
            if played.findings:
                told.passing = [each for each in told.passing if each.walk != walk.number]
                told.findings += played.findings
                print("again:", *played.findings, sep="\n", flush=True)
            if kept is not None:
                keep(played, walk, kept / "again")
        print(f"{told.walks} walks, {told.steps} steps, {time.monotonic() - begun:.0f} s", flush=True)
    return told


def drawn(options: argparse.Namespace, tag: str) -> list[Walk]:
    """The walks that were asked for."""
    numbers = options.only if options.only is not None else range(options.first, options.first + options.walks)
    return [walk for each in numbers for walk in walks(options.seed, 1, steps=options.steps, first=each, tag=tag)]


def main() -> int:
    """Plays, prints the differences, and answers with 1 when one has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.walks", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--walks", type=int, default=200)
    parser.add_argument("--steps", type=int, help="steps of each walk; 8 to 15 without it")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first walk")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the walks to play")
    parser.add_argument("--side-by-side", type=int, default=SIDE_BY_SIDE)
    parser.add_argument("--keep", type=Path, help="keep files, logs and what was answered in this folder")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background of a shell the first one is ignored
        signal.signal(number, lambda *_: sys.exit("interrupted"))
    chosen, again = (drawn(options, tag) for tag in ("", AGAIN))
    with (
        tempfile.TemporaryDirectory(prefix="ww-") as temporary,
        EmbeddedKafka() as kafka,
        stage(kafka.bootstrap, Path(options.keep or temporary)) as running,
    ):
        told = compare(running, chosen, again, side_by_side=options.side_by_side, kept=options.keep)
    for reason, count in told.reasons.most_common():
        print(f"  {count} accepted: {reason}")
    print(f"seed {options.seed}: {told.walks} walks, {told.steps} steps, {told.parted} parted for a reason")
    print(f"{len(told.findings)} differences without an explanation, {len(told.passing)} that did not come again")
    return 1 if told.findings else 0


if __name__ == "__main__":
    sys.exit(main())
