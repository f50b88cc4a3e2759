"""`.properties` files are read as Java reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.properties import dumps, load, loads


# The expected values were printed by java.util.Properties of OpenJDK 17.
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b", {"a": "b"}),
        ("a:b\nc d\ne\tf", {"a": "b", "c": "d", "e": "f"}),
        ("a = b ", {"a": "b "}),
        ("  a  =  b=c", {"a": "b=c"}),
        ("a == b", {"a": "= b"}),
        ("a : = b", {"a": "= b"}),
        ("# x\n! y\n\n  # z\na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=x\\\n   y", {"a": "xy"}),
        ("a=x\\\r\n   y", {"a": "xy"}),
        ("a=x\\\r   y\rb=1", {"a": "xy", "b": "1"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=x\\\n\nb=1", {"a": "x", "b": "1"}),
        ("a=x\\\n# no comment", {"a": "x# no comment"}),
        ("\\\n# a comment\nb=1", {"b": "1"}),
        ("a=x\\", {"a": "x"}),
        ("a=\\t\\n\\r\\f\\z\\u0041", {"a": "\t\n\r\fzA"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("path=C:\\\\x\\y", {"path": "C:\\xy"}),
    ],
)
def test_a_text_means_what_java_makes_of_it(text, values):
    assert loads(text) == values


def test_bytes_are_latin_1(tmp_path):
    path = tmp_path / "w.properties"
    path.write_bytes(b"a=\xe9")
    assert load(path) == {"a": "é"}


@pytest.mark.parametrize("text", ["a=1\nb=\\u12", "a=1\nb=\\uzzzz", "a=1\n\\u12=b"])
def test_a_broken_unicode_escape_is_told_with_its_line(text):
    with pytest.raises(ConfigError, match=r"line 2: .*four hexadecimal digits"):
        loads(text)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"nope\.properties does not exist\."):
        load(tmp_path / "nope.properties")


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_whatever_is_written_is_read_back(values):
    assert loads(dumps(values)) == values
