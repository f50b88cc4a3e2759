"""The committed Go stubs are those of the protos."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

GENERATE = Path(__file__).resolve().parents[2] / "sdk" / "go" / "generate.py"


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go_stubs_are_fresh() -> None:
    done = subprocess.run([sys.executable, GENERATE, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
