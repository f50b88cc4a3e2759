"""Values without a schema are written one way, whatever stands beside them."""

from __future__ import annotations

import pytest

from wherry.contract.data import Float32, Instant, Int8
from wherry.worker.javaclass import NonFinite
from wherry.worker.transform.objects import json_text, write_objects

BESIDE = [1, 1e-5, 2**63, "\ud800", NonFinite("inf")]
"""The first goes through the fast writer, the others need the slow one."""


@pytest.mark.parametrize("beside", BESIDE, ids=repr)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Instant(5), '"1970-01-01T00:00:00.005Z"'),
        (Instant(-1_468_800_000), '"1969-12-15T00:00:00.000Z"'),
        (Instant(-62_135_596_800_000), '"0001-01-01T00:00:00.000Z"'),
        (Instant(253_402_300_800_000), '"+10000-01-01T00:00:00.000Z"'),
        (Instant(-62_167_219_200_000), '"0000-01-01T00:00:00.000Z"'),
        (Instant(-62_167_219_200_001), '"-0001-12-31T23:59:59.999Z"'),
        (Instant(2**63 - 1), '"+292278994-08-17T07:12:55.807Z"'),
        (Instant(-(2**63)), '"-292275055-05-16T16:47:04.192Z"'),
        (Int8(7), "7"),
        (Float32(1.1), "1.1"),
    ],
)
def test_a_value_is_written_alike_whatever_stands_beside_it(value, text, beside):
    written = write_objects([{"a": value, "b": beside}]).to_pylist()[0]
    assert written.startswith(f'{{"a":{text},"b":')
    assert written == json_text({"a": value, "b": beside})
