"""What is told of a server's log; the processes themselves are tested with real servers."""

from __future__ import annotations

from pathlib import Path

from wherry.coordinator.dev.process import LOG_TAIL_BYTES, log_tail


def test_the_tail_is_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    assert log_tail(log, 2) == ["line 98", "line 99"]


def test_the_tail_of_a_huge_log_is_read_from_its_end_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (LOG_TAIL_BYTES + 100) + b"\nend\n")
    lines = log_tail(log)
    assert lines[-1] == "end"
    assert len(lines[0]) < LOG_TAIL_BYTES


def test_a_log_that_is_not_there_has_no_tail(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == []
