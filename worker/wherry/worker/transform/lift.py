"""Objects without schema as columns, where that provably says the same.

Proven per batch, from the texts: all rows are objects of the same members in the same order, all of them scalars of one
kind per member. Members can't be missing or change places, because each text matches an expression of the names in
order; a name between quotes and a colon can't be part of a text, whose own quotes are escaped. Kinds can't change,
because a parser is told what to expect and refuses anything else. What it would let pass (a whole number where
fractions are expected, negative zero, whole numbers beyond 64 bits) is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import Float32
from wherry.worker.convert.json_read import read_exact
from wherry.worker.convert.json_write import WriteOptions, json_texts
from wherry.worker.transform.javaclass import Int8, Int16, Int32

# Fewer rows than this are as quick one by one.
ROWS_MIN: Final = 64
# More members make the expression slow, and rows as wide as this are rare.
MEMBERS_MAX: Final = 100
# Rows looked at to learn a member's kind, as long as it is null.
SAMPLE_MAX: Final = 20
_KINDS: Final = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_AS_NULLS_STAY: Final = WriteOptions(replace_null_with_default=False)
_NARROW: Final = {pa.int8(): Int8, pa.int16(): Int16, pa.int32(): Int32}


def lift(texts: pa.Array) -> pa.StructArray | None:
    """Parses texts into structs; None when it can't be proven that these say the same."""
    if len(texts) < ROWS_MIN or texts.null_count:
        return None
    kinds = _kinds(texts)
    if not kinds or len(kinds) > MEMBERS_MAX:
        return None
    order = r"\s*\{\s*" + r",\s*".join(f'"{re.escape(name)}"\\s*:.*?' for name in kinds)
    if not pc.all(pc.match_substring_regex(texts, f"(?s)^{order}$")).as_py():
        return None
    struct = read_exact(texts, pa.struct([pa.field(name, kind) for name, kind in kinds.items()]))
    if struct is None or not all(
        _exact(texts, field.name, struct.field(place)) for place, field in enumerate(struct.type)
    ):
        return None
    return struct


def texts(struct: pa.StructArray) -> pa.Array:
    """Writes structs as JSON."""
    return json_texts(pa.field("value", struct.type), struct, _AS_NULLS_STAY)[0]


def lower(fields: Sequence[pa.Field], arrays: Sequence[pa.Array]) -> list[Any]:
    """Makes Python values of columns, with the widths that no schema tells."""
    names = [field.name for field in fields]
    return [dict(zip(names, values, strict=True)) for values in zip(*map(values_of, arrays), strict=True)]


def values_of(array: pa.Array) -> list[Any]:
    """Makes Python values of a column."""
    values = array.to_pylist()
    if array.type == pa.float32():
        return [None if value is None else Float32(value) for value in values]
    narrow = _NARROW.get(array.type)
    return values if narrow is None else [None if value is None else narrow(value) for value in values]


def _kinds(texts: pa.Array) -> dict[str, pa.DataType]:
    """Learns from the first rows what kinds the members are of; empty when they aren't all scalars."""
    kinds: dict[str, pa.DataType] = {}
    unknown: set[str] = set()
    for row in range(min(len(texts), SAMPLE_MAX)):
        try:
            found = orjson.loads(texts[row].as_py())
        except orjson.JSONDecodeError:
            return {}
        if not isinstance(found, dict):
            return {}
        if not row:
            kinds = dict.fromkeys(found, pa.null())
            unknown = set(found)
        for name in tuple(unknown):
            value = found.get(name)
            if value is not None:
                kind = _KINDS.get(type(value))
                if kind is None or not re.fullmatch(r"[^\"\\\x00-\x1f]*", name):
                    return {}
                kinds[name] = kind
                unknown.discard(name)
        if not unknown:
            return kinds
    return {}


def _exact(texts: pa.Array, name: str, column: pa.Array) -> bool:
    """Whether the numbers of a column are written in the texts as their kind writes them."""
    if not pa.types.is_floating(column.type):
        return True
    whole = pc.equal(pc.floor(column), column)
    if not pc.any(whole).as_py():
        return True
    doubtful = texts.filter(pc.fill_null(whole, False))
    number = f'"{re.escape(name)}"\\s*:\\s*-?\\d+\\s*[,}}]'
    return not pc.any(pc.match_substring_regex(doubtful, number)).as_py()
