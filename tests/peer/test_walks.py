"""Random walks of an operator come to the same on both; `python -m tests.peer.walks` plays many more."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.peer.walks.__main__ import AGAIN, compare, stage
from tests.peer.walks.draw import walks

SEED, WALKS, STEPS = 1, 6, 5


def test_random_walks_come_to_the_same(kafka_address: str) -> None:
    chosen, again = (list(walks(SEED, WALKS, steps=STEPS, tag=tag)) for tag in ("", AGAIN))
    with (
        tempfile.TemporaryDirectory(prefix="ww-") as directory,  # short: sockets lie below it
        stage(kafka_address, Path(directory)) as running,
    ):
        told = compare(running, chosen, again, side_by_side=WALKS)
    assert not told.findings, "\n".join(map(str, told.findings))
    assert told.walks == WALKS
