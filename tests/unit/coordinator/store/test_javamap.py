"""The stream is what a JVM writes and reads, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.coordinator.store import javamap
from wherry.coordinator.store.javamap import JavaStreamError

# Written by a standalone Kafka Connect 4.3.1 (the file name in it replaced by one of the same length).
REAL = Path(__file__).parent / "data/kafka-connect-4.3.1.offsets"
# Written by OpenJDK 17: an empty map; and one whose two values are the same array, so that the second is a reference.
EMPTY = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468726573"
    "686f6c6478703f40000000000000770800000010000000007870"[:-2]
)
HEADER = EMPTY[: EMPTY.index(b"\x3f\x40")]
BYTES_CLASS = bytes.fromhex("7200025b42acf317f8060854e0020000") + b"\x78\x70"


def test_a_file_of_the_real_worker_is_read():
    key, value = b'["c1",{"filename":"/var/log/access.log"}]', b'{"position":3}'
    assert javamap.loads(REAL.read_bytes()) == {key: value}


def test_what_was_read_from_the_real_worker_is_written_back_to_the_byte():
    assert javamap.dumps(javamap.loads(REAL.read_bytes())) == REAL.read_bytes()


def test_an_empty_map_is_what_java_writes():
    assert javamap.dumps({}) == EMPTY
    assert javamap.loads(EMPTY) == {}


def test_an_array_that_occurs_twice_is_followed_by_its_reference():
    first = b"\x75" + BYTES_CLASS + b"\0\0\0\1k" + b"\x75\x71\0\x7e\0\x02\0\0\0\1v"
    second = b"\x75\x71\0\x7e\0\x02\0\0\0\1l" + b"\x71\0\x7e\0\x04"
    stream = HEADER + b"\x3f\x40\0\0\0\0\0\x0c\x77\x08\0\0\0\x10\0\0\0\2" + first + second + b"\x78"
    assert javamap.loads(stream) == {b"k": b"v", b"l": b"v"}


def test_nulls_are_kept():
    assert javamap.loads(javamap.dumps({None: b"v", b"k": None})) == {None: b"v", b"k": None}


@given(st.dictionaries(st.binary(max_size=40), st.none() | st.binary(max_size=40), max_size=40))
def test_whatever_is_written_is_read_back(entries):
    assert javamap.loads(javamap.dumps(entries)) == entries


@given(st.integers(min_value=0, max_value=len(REAL.read_bytes()) - 1))
def test_a_file_cut_anywhere_is_refused(length):
    with pytest.raises(JavaStreamError):
        javamap.loads(REAL.read_bytes()[:length])


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(stream):
    with pytest.raises(JavaStreamError):
        javamap.loads(stream)


def test_another_class_is_refused():
    with pytest.raises(JavaStreamError, match=r"class java\.util\.HashMap"):
        javamap.loads(REAL.read_bytes().replace(b"java.util.HashMap", b"java.util.TreeMap"))
