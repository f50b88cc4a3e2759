"""Encodings as Java has them; what is expected was printed by Java 17."""

from __future__ import annotations

import pytest

from wherry.contract.java_charsets import Charset


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("UTF-8", b"\xed\xb6A\xff", "\ufffdA\ufffd"),
        ("utf8", b"\xed\xa0\x80", "\ufffd"),
        ("UTF-16", b"\0a", "a"),
        ("UTF-16", b"\xff\xfea\0", "a"),
        ("UTF-16", b"\xfe\xff\0a", "a"),
        ("UTF-16", b"\xd8\0\0a\0b", "\ufffdb"),
        ("UTF-16", b"\xd8\0", "\ufffd"),
        ("UTF-16", b"\0a\0", "a\ufffd"),
        ("UTF-16LE", b"a\0", "a"),
        ("UTF-32", b"\0\0\0a", "a"),
        ("US-ASCII", b"a\xc3\xa4", "a\ufffd\ufffd"),
        ("ISO-8859-1", b"\xff\x81", "\xff\x81"),
        ("windows-1252", b"\x80\x81", "\u20ac\ufffd"),
    ],
)
def test_any_bytes_are_read(name: str, data: bytes, text: str) -> None:
    assert Charset(name).decode(data) == text


@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("UTF-16", "\xe4", b"\xfe\xff\0\xe4"),
        ("UTF-16", "", b""),
        ("UTF-16", "\U0001f600", b"\xfe\xff\xd8\x3d\xde\x00"),
        ("UTF-16BE", "a", b"\0a"),
        ("UTF-32", "a", b"\0\0\0a"),
        ("US-ASCII", "\xe4\U0001f600", b"??"),
        ("ISO-8859-1", "\xe4\u20ac", b"\xe4?"),
    ],
)
def test_any_text_is_written(name: str, text: str, data: bytes) -> None:
    assert Charset(name).encode(text) == data


@pytest.mark.parametrize("name", ["nope", "base64", "rot13"])
def test_what_is_no_encoding_of_texts_is_refused(name: str) -> None:
    with pytest.raises(LookupError):
        Charset(name)


def test_of_some_encodings_it_is_known_that_bytes_come_back_as_they_were() -> None:
    assert Charset("latin1").keeps_bytes
    assert not Charset("UTF-16").keeps_bytes
    assert Charset("UTF8").is_utf8
