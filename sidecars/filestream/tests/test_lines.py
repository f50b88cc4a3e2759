"""Lines are cut as Kafka Connect cuts them, but counted in bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry_filestream.lines import cut


def cut_list(data: bytes, *, last: bool = False) -> tuple[list[str], int]:
    found = cut(data, last=last)
    return found.lines.to_pylist(), found.byte_count


@pytest.mark.parametrize(
    ("data", "lines", "count"),
    [
        (b"", [], 0),
        (b"a", [], 0),
        (b"a\n", ["a"], 2),
        (b"a\n\nb\nrest", ["a", "", "b"], 5),
        (b"\n\n", ["", ""], 2),
        (b"a\r\nb\rc\n", ["a", "b", "c"], 7),
        (b"a\r", [], 0),
        (b"a\rb", ["a"], 2),
        ("€😀\n".encode(), ["€😀"], 8),
        (b"\xff\n", ["\ufffd"], 2),
        (b"\xef\xbb\xbfa\n", ["\ufeffa"], 5),
    ],
)
def test_complete_lines_are_cut_and_the_rest_waits(data: bytes, lines: list[str], count: int) -> None:
    assert cut_list(data) == (lines, count)


@pytest.mark.parametrize(
    ("data", "lines"), [(b"a", ["a"]), (b"a\r", ["a"]), (b"a\nb", ["a", "b"]), (b"a\n", ["a"]), (b"", [])]
)
def test_at_the_very_end_what_is_left_is_a_line(data: bytes, lines: list[str]) -> None:
    assert cut_list(data, last=True) == (lines, len(data))


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", "é".encode(), b"xyz"])), st.integers(0, 50))
def test_cutting_in_two_steps_gives_the_same_lines_as_in_one(parts: list[bytes], at: int) -> None:
    data = b"".join(parts)
    at = min(at, len(data))
    first, done = cut_list(data[:at])
    rest, more = cut_list(data[done:])
    whole, count = cut_list(data)
    if all(ord("\x80") > byte for byte in data[at - 1 : at + 1]):
        assert (first + rest, done + more) == (whole, count)
