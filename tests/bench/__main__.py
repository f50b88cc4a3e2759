"""Entry of `python -m tests.bench`; works from a clone whether Wherry is installed in the environment or not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOMS = ("coordinator", "worker", "sdk/python")

if importlib.util.find_spec("wherry") is None:
    sys.path[:0] = [str(Path(__file__).resolve().parents[2] / room) for room in ROOMS]

from tests.bench.cli import main  # noqa: E402 - the path comes first

sys.exit(main())
