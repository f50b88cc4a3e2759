"""How much JSON may hold, as Jackson has it in Kafka Connect 4.3: what is beyond is damaged to it.

Numbers have 1,000 digits at most, leading zeros not counted and those of the exponent too; names are 50,000 bytes of
UTF-8 and texts 20,000,000 characters of UTF-16 long at most; objects and lists lie 1,000 deep at most. Powers of ten
are limited by what a Java decimal can hold, which the parser in `wherry.contract.schemaless` knows.

What a step makes of a value has no limits, so only what is read is checked, and never where it is plainly short.
"""

from __future__ import annotations

import json
import re
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NUMBER_DIGITS_MAX: Final = 1_000
DEPTH_MAX: Final = 1_000
NAME_BYTES_MAX: Final = 50_000
TEXT_UNITS_MAX: Final = 20_000_000

_UTF8_BYTES_MAX: Final = 4
# Of a run of so many bytes as a number of too many digits has, eight samples are digits or signs too.
_STRIDE: Final = NUMBER_DIGITS_MAX // 8
_LONG_NUMBER: Final = re.compile(rf"[0-9.eE+\-]{{{NUMBER_DIGITS_MAX + 1}}}")
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+\-]*|[\[\]{}:]|[a-z]+', re.DOTALL)
_LEADING: Final = re.compile(r"^-?0*(?=[0-9])")
_NO_DIGITS: Final = re.compile(r"[.eE+\-]")
_IN_NUMBERS: Final = np.isin(np.arange(256), np.frombuffer(b"0123456789.eE+-", np.uint8))
# An exponent that may be beyond 32 bits has so many digits at least.
_EXPONENT_DIGITS: Final = 10
# Little enough to stay in a processor's cache.
_CHUNK_BYTES: Final = 1 << 16
_NUMBER_END: Final = re.compile(rb"(?:^|[\[:,\s])-?[0-9]+(?:\.[0-9]+)?$")
_AFTER_E: Final = np.isin(np.arange(256), np.frombuffer(b"0123456789+-", np.uint8))


def check(text: str, *, within: int = 0) -> None:
    """Refuses a text whose first value is more than Jackson takes; whether it is JSON is known already.

    Args:
        text: The text.
        within: How deep it lies in what was read.

    Raises:
        ValueError: What it has too much of.
    """
    if len(text) > NUMBER_DIGITS_MAX and _may_exceed(text, within):
        _scan(text, within)


def may_exceed(lines: pa.Array, octets: npt.NDArray[np.uint8]) -> bool:
    """Whether any of some texts might be more than Jackson takes; those that aren't plainly less have to be checked.

    Args:
        lines: The texts.
        octets: Their bytes, side by side.
    """
    if _may_have_huge_exponent(octets):
        return True
    longest = pc.max(pc.binary_length(lines)).as_py() or 0
    if longest <= NUMBER_DIGITS_MAX:
        return False
    if longest > NAME_BYTES_MAX or _may_have_long_number(octets):
        return True
    # What is opened has to be closed.
    return longest >= 2 * DEPTH_MAX and _may_be_deep(lines, octets)


def _may_have_huge_exponent(octets: npt.NDArray[np.uint8]) -> bool:
    return any(
        _NUMBER_END.search(octets[max(0, end - NUMBER_DIGITS_MAX) : end].tobytes()) is not None
        # Most of these are parts of names, such as UUIDs are.
        for first in range(0, len(octets) - _EXPONENT_DIGITS, _CHUNK_BYTES)
        for end in _exponents(octets[first : first + _CHUNK_BYTES + _EXPONENT_DIGITS], first)
    )


def _exponents(octets: npt.NDArray[np.uint8], first: int) -> list[int]:
    """Where an E is followed by a digit or sign and so many digits that they may be beyond 32 bits."""
    digit = octets - np.uint8(ord("0")) < 10
    found = (octets[:-_EXPONENT_DIGITS] | np.uint8(0x20)) == ord("e")
    for further in range(2, _EXPONENT_DIGITS + 1, 2):
        found &= digit[further : len(found) + further]
    at = np.flatnonzero(found)
    at = at[_AFTER_E[octets[at + 1]]]
    for further in range(3, _EXPONENT_DIGITS, 2):
        at = at[digit[at + further]]
    return [int(each) + first for each in at]


def _may_be_deep(lines: pa.Array, octets: npt.NDArray[np.uint8]) -> bool:
    openings = np.flatnonzero((octets | np.uint8(0x20)) == ord("{"))  # which [ becomes
    if len(openings) < DEPTH_MAX:
        return False
    ends = np.frombuffer(lines.buffers()[1], np.int32, len(lines) + 1, 4 * lines.offset)
    return bool(np.diff(np.searchsorted(openings, ends)).max() >= DEPTH_MAX)


def _may_have_long_number(octets: npt.NDArray[np.uint8]) -> bool:
    run = _IN_NUMBERS[octets[::_STRIDE]]
    for step in (1, 2, 4):  # each then tells of eight in a row
        run = run[step:] & run[:-step]
    return bool(run.any()) and _LONG_NUMBER.search(octets.tobytes().decode("latin-1")) is not None


def _may_exceed(text: str, within: int) -> bool:
    if text.count("{") + text.count("[") + within > DEPTH_MAX or _LONG_NUMBER.search(text) is not None:
        return True
    if len(text) <= NAME_BYTES_MAX // _UTF8_BYTES_MAX:
        return False
    # A quote that is written as \" ends no text; what is taken for one by mistake only makes parts longer.
    parts = text.replace('\\"', "__").split('"')
    return max(map(len, parts)) > NAME_BYTES_MAX // _UTF8_BYTES_MAX


def _scan(text: str, within: int) -> None:
    """Walks over the first value of a text, token by token."""
    depth, before = within, ""
    for found in _TOKEN.finditer(text):
        match (token := found[0])[0]:
            case "{" | "[":
                depth += 1
                if depth > DEPTH_MAX:
                    raise ValueError(f"nested more than {DEPTH_MAX} deep")
            case "}" | "]":
                depth -= 1
            case ":":
                _check_name(before)
            case '"':
                _check_text(token)
            case _:
                _check_number(token)
        if depth == within:
            return
        before = token


def _check_number(token: str) -> None:
    if len(_NO_DIGITS.sub("", _LEADING.sub("", token))) > NUMBER_DIGITS_MAX:
        raise ValueError(f"a number of more than {NUMBER_DIGITS_MAX} digits")


def _check_name(token: str) -> None:
    if len(token) > NAME_BYTES_MAX // _UTF8_BYTES_MAX:
        name = json.loads(token, strict=False)
        if len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX:
            raise ValueError(f"a name of more than {NAME_BYTES_MAX} bytes")


def _check_text(token: str) -> None:
    if len(token) > TEXT_UNITS_MAX // 2:
        units = len(json.loads(token, strict=False).encode("utf-16-le", "surrogatepass")) // 2
        if units > TEXT_UNITS_MAX:
            raise ValueError(f"a text of more than {TEXT_UNITS_MAX} characters")
