"""What every unit test leaves as it found it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    """Takes back handlers of the root logger: those of a command's own log write to a stream that is closed by then."""
    before = logging.root.handlers[:]
    yield
    logging.root.handlers[:] = before
