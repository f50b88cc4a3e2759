"""Objects without schema as columns, where that provably says the same.

Proven from the texts: all rows are objects whose members come in one order, each null or of its member's kind, written
as that kind writes them: whole numbers of at most 18 digits, fractions with a point and without exponent. So nothing is
in another order, given twice or followed by something else, and no number changes on its way into a column.

The compiled helper proves it row by row while it reads. A member may be missing then, be of no single kind, a list or
an object (kept as JSON texts), and rows that fit no columns are left to the row-wise way. Without it one regular
expression proves it for all rows of a batch, which must have the same members, each a scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import Float32, Int8, Int16, Int32
from wherry.worker import native
from wherry.worker.convert.json_read import read_exact
from wherry.worker.convert.json_write import WriteOptions, json_texts, members_texts
from wherry.worker.transform import lift_native
from wherry.worker.transform.columns import Columns, Positions
from wherry.worker.transform.members import Members
from wherry.worker.transform.objects import parse_objects, write_objects

# Fewer rows than this are as quick one by one.
ROWS_MIN: Final = 64
# More members make the expression slow, and rows as wide as this are rare.
MEMBERS_MAX: Final = 100
# Rows looked at to learn the members and their kinds, each time.
SAMPLE_MAX: Final = 20
# How often rows that did not fit are looked at, too, and all are read again.
ROUNDS_MAX: Final = 3
_TOKENS: Final = {
    # Control characters and escaped surrogates are for the row-wise way.
    pa.string(): r'"(?:[^"\\\x00-\x1f]|\\[^u])*"',
    pa.int64(): r"-?[1-9][0-9]{0,17}|0",
    # So many digits before the point that Java prints no exponent, and no negative zero.
    pa.float64(): r"-?[1-9][0-9]{0,15}\.[0-9]+|0\.[0-9]+|-0\.[0-9]*[1-9][0-9]*",
    pa.bool_(): "true|false",
}
_BLANKS: Final = r"[ \t\r\n]*"
_AS_NULLS_STAY: Final = WriteOptions(replace_null_with_default=False)
_NARROW: Final = {pa.int8(): Int8, pa.int16(): Int16, pa.int32(): Int32}
_MISSING: Final = object()


def lift(texts: pa.Array) -> Columns | None:
    """Parses texts into columns; None when it can't be proven of all that these say the same."""
    if len(texts) < ROWS_MIN or texts.null_count:
        return None
    found = some(texts)
    return None if found is None or len(found[1]) < len(texts) else found[0]


def some(texts: pa.Array) -> tuple[Columns, Positions] | None:
    """Parses those texts into columns that fit the same ones.

    Returns:
        The columns, and the places of the rows they hold; None when it can't be proven of any that these say the same.
    """
    if native.library() is None:
        columns = None if texts.null_count else _uniform(texts)
        return None if columns is None else (columns, np.arange(len(texts)))
    members = Members()
    places: Positions = np.arange(len(texts))
    found = None
    for _ in range(ROUNDS_MAX):
        if not _learn(members, texts, places):
            break
        found = lift_native.read(texts, members.fields())
        if found is None or len(found[1]) == len(texts):
            return found
        places = np.setdiff1d(np.arange(len(texts)), found[1], assume_unique=True)
    if found is None or not len(found[1]):
        return None
    columns, taken = found
    return columns.take(pa.array(taken)), taken


def texts(columns: Columns) -> pa.Array:
    """Writes objects as JSON."""
    struct = columns.struct()
    if any(mask is not None for mask in columns.there):
        return members_texts(struct, columns.there, _AS_NULLS_STAY)
    return json_texts(pa.field("value", struct.type), struct, _AS_NULLS_STAY)[0]


def lower(columns: Columns) -> list[Any]:
    """Makes Python values of columns, with the widths that no schema tells."""
    names = [field.name for field in columns.fields]
    values = [values_of(array) for array in columns.arrays]
    if not any(mask is not None for mask in columns.there) and len(set(names)) == len(names):
        return [dict(zip(names, row, strict=True)) for row in _rows(values, columns.rows)]
    for place, mask in enumerate(columns.there):
        if mask is not None:
            there = mask.to_pylist()
            values[place] = [
                value if is_there else _MISSING for value, is_there in zip(values[place], there, strict=True)
            ]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not _MISSING}
        for row in _rows(values, columns.rows)
    ]


def values_of(array: pa.Array) -> list[Any]:
    """Makes Python values of a column."""
    if array.type == JSON_TYPE:
        return parse_objects(array.storage)[0]
    values = array.to_pylist()
    if array.type == pa.float32():
        return [None if value is None else Float32(value) for value in values]
    narrow = _NARROW.get(array.type)
    return values if narrow is None else [None if value is None else narrow(value) for value in values]


def json_of(values: list[Any]) -> pa.Array:
    """Makes a column of JSON texts of Python values."""
    return pa.ExtensionArray.from_storage(JSON_TYPE, write_objects(values))


def _rows(values: Sequence[list[Any]], rows: int) -> Iterable[tuple[Any, ...]]:
    return zip(*values, strict=True) if values else iter([()] * rows)


def _learn(members: Members, texts: pa.Array, places: Positions) -> bool:
    """Learns from some of the rows at the places given; tells whether anything was new."""
    new = False
    for value in _sample(texts, places):
        new = members.learn(value) or new
    return new


def _sample(texts: pa.Array, places: Positions) -> Iterator[Any]:
    """Reads rows that lie evenly among the places given; what can't be read is passed over."""
    for place in places[:: max(1, -(-len(places) // SAMPLE_MAX))].tolist():
        text = texts[place].as_py()
        try:
            value = None if text is None else orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        yield value


def _uniform(texts: pa.Array) -> Columns | None:
    """Parses texts into columns of scalars that all have; None when it can't be proven that these say the same."""
    members = Members()
    for value in _sample(texts, np.arange(len(texts))):
        if type(value) is not dict:
            return None
        members.learn(value)
    fields = members.fields()
    if not fields or len(fields) > MEMBERS_MAX or any(field.type == JSON_TYPE for field in fields):
        return None
    # Without blanks, as most programs write it, the expression is quicker.
    if not any(
        pc.all(pc.match_substring_regex(texts, _expression(fields, blanks))).as_py() for blanks in ("", _BLANKS)
    ):
        return None
    struct = read_exact(texts, pa.struct(fields))
    return None if struct is None else Columns.of(struct)


def _expression(fields: Sequence[pa.Field], blanks: str) -> str:
    members = (
        f'{blanks}"{re.escape(field.name)}"{blanks}:{blanks}(?:{_TOKENS[field.type]}|null){blanks}' for field in fields
    )
    return rf"^{blanks}\{{{','.join(members)}\}}{blanks}$"
