"""Texts in the encodings of Java's `Charset`, where Python's are not the same. Pure.

UTF-16 and UTF-32 without a mark are big-endian there, and UTF-16 is written with a mark unless there is nothing to
write. What is damaged reads as U+FFFD, what an encoding lacks is written as a question mark.
"""

from __future__ import annotations

import codecs
from typing import Final

from wherry.contract.java import decode_utf8

_UTF16, _UTF32 = "utf-16", "utf-32"
_UNITS: Final = {_UTF16: 2, _UTF32: 4}
_MARKED: Final = (_UTF16, _UTF32)
_REPLACED: Final = "\ufffd"


class Charset:
    """One encoding.

    Raises:
        LookupError: There is none of that name.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        found = codecs.lookup(name.strip())
        if not getattr(found, "_is_text_encoding", True):
            raise LookupError(f"{name} is no encoding of texts")
        self._name = found.name

    @property
    def is_utf8(self) -> bool:
        """Whether it is UTF-8: bytes that are valid come back as they were."""
        return self._name == "utf-8"

    @property
    def keeps_bytes(self) -> bool:
        """Whether any bytes come back as they were."""
        return self._name == "iso8859-1"

    def decode(self, data: bytes) -> str:
        """Reads any bytes."""
        if self.is_utf8:
            return decode_utf8(data)
        if self._name in _MARKED:
            return self._decode_marked(data)
        return data.decode(self._name, _ERRORS if self._name.startswith(_UTF16) else "replace")

    def encode(self, text: str) -> bytes:
        """Writes any text."""
        if self._name == _UTF16:
            return codecs.BOM_UTF16_BE + text.encode("utf-16-be", "replace") if text else b""
        return text.encode("utf-32-be" if self._name == _UTF32 else self._name, "replace")

    def _decode_marked(self, data: bytes) -> str:
        marks = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
        if self._name == _UTF32:
            marks = (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)
        order = "le" if data.startswith(marks[1]) else "be"
        rest = data[_UNITS[self._name] :] if data.startswith(marks) else data
        return rest.decode(f"{self._name}-{order}", _ERRORS if self._name == _UTF16 else "replace")


def _damaged(error: UnicodeError) -> tuple[str, int]:
    """The first half of a pair takes the unit with it that is no second half."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    big = error.encoding.lower().replace("_", "-").endswith("be")
    high = error.object[error.start : error.start + 2]
    first = len(high) == 2 and 0xD8 <= high[0 if big else 1] <= 0xDB
    whole = first and error.start + 4 <= len(error.object)
    return _REPLACED, error.start + 4 if whole else max(error.end, error.start + len(high))


_ERRORS: Final = "wherry-java-utf-16"
codecs.register_error(_ERRORS, _damaged)
