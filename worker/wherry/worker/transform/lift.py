"""Objects without schema as columns, where that provably says the same.

Proven per batch, from the texts: all rows are objects of the same members in the same order, each a scalar of its
member's kind, written as that kind writes them: whole numbers of at most 18 digits, fractions with a point and without
exponent. So nothing is missing, in another order, given twice or followed by something else, and no number changes on
its way into a column. The compiled helper proves it while it reads; without it one regular expression does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import Float32
from wherry.worker import native
from wherry.worker.convert import json_native
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
_TOKENS: Final = {
    # Control characters and escaped surrogates are for the row-wise way.
    pa.string(): r'"(?:[^"\\\x00-\x1f]|\\[^u])*"',
    pa.int64(): r"-?[1-9][0-9]{0,17}|0",
    # So many digits before the point that Java prints no exponent, and no negative zero.
    pa.float64(): r"-?[1-9][0-9]{0,15}\.[0-9]+|0\.[0-9]+|-0\.[0-9]*[1-9][0-9]*",
    pa.bool_(): "true|false",
}
_BLANKS: Final = r"[ \t\r\n]*"
_PLAIN_NAME: Final = re.compile(r"[^\"\\\x00-\x1f]*")
_AS_NULLS_STAY: Final = WriteOptions(replace_null_with_default=False)
_NARROW: Final = {pa.int8(): Int8, pa.int16(): Int16, pa.int32(): Int32}


def lift(texts: pa.Array) -> pa.StructArray | None:
    """Parses texts into structs; None when it can't be proven that these say the same."""
    if len(texts) < ROWS_MIN or texts.null_count:
        return None
    kinds = _kinds(texts)
    if not kinds or len(kinds) > MEMBERS_MAX:
        return None
    wanted = pa.struct([pa.field(name, kind) for name, kind in kinds.items()])
    if native.library() is not None:
        # What it refuses isn't asked again: the row-wise way says the same.
        return json_native.read_objects(texts, wanted, strict=True)
    # Without blanks, as most programs write it, the expression is quicker.
    if not any(pc.all(pc.match_substring_regex(texts, _expression(kinds, blanks))).as_py() for blanks in ("", _BLANKS)):
        return None
    return read_exact(texts, wanted)


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


def _expression(kinds: dict[str, pa.DataType], blanks: str) -> str:
    members = (
        f'{blanks}"{re.escape(name)}"{blanks}:{blanks}(?:{_TOKENS[kind]}|null){blanks}' for name, kind in kinds.items()
    )
    return rf"^{blanks}\{{{','.join(members)}\}}{blanks}$"


def _kinds(texts: pa.Array) -> dict[str, pa.DataType]:
    """Learns from the first rows what kinds the members are of; empty when not all are scalars, or there are none."""
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
                if kind is None or not _PLAIN_NAME.fullmatch(name):
                    return {}
                kinds[name] = kind
                unknown.discard(name)
        if not unknown:
            return kinds
    if not all(map(_PLAIN_NAME.fullmatch, unknown)):
        return {}
    # Null says nothing of its kind, and is the same in all of them.
    return kinds | dict.fromkeys(unknown, pa.string())
