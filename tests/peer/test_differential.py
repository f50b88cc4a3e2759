"""Random records through random configurations come out alike; `python -m tests.peer.differential` plays many more."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.peer.differential.__main__ import compare
from tests.peer.differential.cases import cases

SEED, CONFIGS, RECORDS = 1, 16, 20


def test_random_records_come_out_alike(kafka_address: str) -> None:
    with tempfile.TemporaryDirectory(prefix="wd-") as directory:  # short: sockets lie below it
        found = compare(list(cases(SEED, CONFIGS, RECORDS)), kafka_address, Path(directory))
    assert not found.unexplained, "\n".join(found.unexplained)
    assert found.records == CONFIGS * RECORDS
