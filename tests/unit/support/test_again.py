"""What is run once more when it has failed, and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIRST_TIME = """
import pathlib
def test_passes_the_second_time():
    mark = pathlib.Path(__file__).with_suffix(".mark")
    was_there, _ = mark.exists(), mark.touch()
    assert was_there
"""
EVERY_TIME = "def test_never_passes():\n    assert 1 == 2\n"
PROMISE = f"import pytest\npytestmark = pytest.mark.promise\n{FIRST_TIME}"
WELL = "def test_passes():\n    pass\n"


@pytest.mark.parametrize(
    ("files", "code", "told", "summary"),
    [
        ([WELL], 0, None, "1 passed"),
        ([WELL, FIRST_TIME, FIRST_TIME], 0, "UNSETTLED: failed once and passed", "2 passed"),
        ([WELL, EVERY_TIME], 1, "1 failed, in 1 file(s), which are run once more", "1 failed"),
        ([FIRST_TIME] * 3, 1, None, "3 failed"),
        ([PROMISE, WELL], 1, None, "1 failed, 1 passed"),
        (["import nothing_of_this_name\n"], 2, None, "1 error"),
    ],
    ids=["well", "twice", "broken", "many", "promise", "unreadable"],
)
def test_one_or_two_files_get_a_second_try(
    files: list[str], code: int, told: str | None, summary: str, tmp_path: Path
) -> None:
    for number, text in enumerate(files):
        (tmp_path / f"test_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = promise\n")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.again", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout
    assert summary in done.stdout
    assert told in done.stdout if told else "once more" not in done.stdout
