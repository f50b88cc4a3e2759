"""Bodies are the same bytes, by whichever way they are made."""

from __future__ import annotations

import json

import pytest

from wherry.coordinator.rest.bodies import dumps

ODD = "".join(map(chr, [*range(0x110), 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F6A2]))


@pytest.mark.parametrize(
    "value",
    [
        {"name": ODD, ODD: [None, True, False, 0, -1, 2**53, 1.5, "", {}, []]},
        {"half a pair": "\ud83d", "big": 1},
        {"beyond 64 bits": 2**64, "text": "ä"},
        {1: "a number as a key"},
    ],
)
def test_json_is_compact_and_has_non_ascii_as_it_is(value: object) -> None:
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    assert dumps(value) == plain
