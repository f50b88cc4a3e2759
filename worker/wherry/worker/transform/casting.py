"""Java's conversions between primitive types, for columns and for single values: the same answers both ways.

Numbers narrow by wrapping, fractions to whole numbers saturate (to 32 bits, if the target is narrower), text is parsed
as `Integer.parseInt` and `Double.parseDouble` do and printed as `toString` does. Moments count as their numbers, and
print in the text form of Connect's `Values`.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract import values
from wherry.contract.data import DAY_MS, DataError, Float32, Instant, Int8, Int16, Int32
from wherry.contract.java import double_text, float_text, to_float32
from wherry.worker.convert.json_write import plain_doubles
from wherry.worker.javaclass import NonFinite, class_of
from wherry.worker.transform.failing import Failures

SUPPORTED: Final = "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"
_SCALARS: Final = frozenset({str, int, float, bool})
_INTEGER: Final = re.compile(r"[+-]?\d+")
_PLAIN_INTEGER: Final = r"^-?[0-9]{1,18}$"
_BLANKS: Final = "".join(map(chr, range(0x21)))
# As Java's parser of floating-point numbers takes them.
_FLOAT: Final = re.compile(
    r"([+-]?)(?:(?P<word>NaN|Infinity)|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7
_NUMPY: Final = {pa.int8(): np.int8, pa.int16(): np.int16, pa.int32(): np.int32, pa.int64(): np.int64}
_BITS: Final = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_BOXES: Final = {pa.int8(): Int8, pa.int16(): Int16, pa.int32(): Int32, pa.int64(): int}


class CastError(DataError):
    """A value that can't be cast."""


def cast_array(array: pa.Array, target: pa.DataType, failures: Failures) -> pa.Array:
    """Casts a column; null stays null.

    Args:
        array: The column.
        target: A primitive type.
        failures: Takes the rows that can't be cast; they are null in the answer.
    """
    source = array.type
    problem = unsupported(source)
    if problem is None and pa.types.is_binary(source) and not pa.types.is_string(target):
        problem = "Unexpected type in Cast transformation: class [B"
    if problem is not None:
        for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
            failures.add(row, CastError(problem))
        return pa.nulls(len(array), target)
    if source == target:
        return array
    if pa.types.is_string(source):
        return _from_text(array, target, failures)
    if pa.types.is_string(target):
        return _to_text(array)
    if pa.types.is_decimal(source):
        return _each(array, target, failures)
    return _number(numbers_of(array), target)


def unsupported(source: pa.DataType) -> str | None:
    """Says why nothing of a type can be cast; None when it can."""
    for is_kind, name in ((pa.types.is_struct, "STRUCT"), (pa.types.is_map, "MAP"), (pa.types.is_list, "ARRAY")):
        if is_kind(source):
            return f"Cast transformation does not support casting from {name}; supported types are {SUPPORTED}"
    return None


def check_loose(value: Any) -> None:
    """Refuses a value without schema that is no primitive.

    Raises:
        CastError: It is none.
    """
    if isinstance(value, dict | list):
        kind = "MAP" if isinstance(value, dict) else "ARRAY"
        raise CastError(f"Cast transformation does not support casting from {kind}; supported types are {SUPPORTED}")
    if isinstance(value, Instant | Decimal):
        raise CastError(
            f"Cast transformation was passed a value of type class {class_of(value)} which is not supported by "
            "Connect's data API"
        )


def loose_cast(target: pa.DataType) -> Callable[[Any], Any]:
    """Returns what casts values without schema; null stays null. It raises CastError.

    The values that come most often take a short way to what `cast_value` says of them.
    """

    def cast(value: Any) -> Any:
        if value is None:
            return None
        if type(value) not in _SCALARS:
            check_loose(value)
        return cast_value(value, target)

    if pa.types.is_string(target):
        return lambda value: value if type(value) is str else str(value) if type(value) is int else cast(value)
    if target == pa.float32():
        return lambda value: Float32(to_float32(value)) if type(value) is float else cast(value)
    if target in _BOXES:
        box, end = _BOXES[target], 1 << (_BITS[target] - 1)
        return lambda value: box(value) if type(value) is int and -end <= value < end else cast(value)
    return cast


def cast_value(value: Any, target: pa.DataType) -> Any:
    """Casts one value that isn't null.

    Raises:
        CastError: It can't be cast.
    """
    if target in _BOXES:
        return _BOXES[target](_integer(value, target))
    if pa.types.is_floating(target):
        number = _floating(value, target)
        if target == pa.float32():
            return Float32(to_float32(number))
        double = float(number)
        return double if math.isfinite(double) else NonFinite(double)
    if pa.types.is_boolean(target):
        if isinstance(value, str):
            return value.lower() == "true"
        return _integer(value, pa.int64()) != 0
    return text_of(value)


def text_of(value: Any) -> str:
    """Returns what Java prints for a primitive value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Float32):
        return float_text(value)
    if isinstance(value, float):
        return repr(value) if _PLAIN_MIN <= abs(value) < _PLAIN_MAX else double_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def narrowed(value: int, bits: int) -> int:
    """Returns the low bits of a number, as a signed one."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _integer(value: Any, target: pa.DataType) -> int:
    bits = _BITS[target]
    if isinstance(value, str):
        number = int(value) if _INTEGER.fullmatch(value) else None
        if number is None or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise out_of_range(value)
        return number
    if isinstance(value, float):
        return narrowed(_saturated(value, 64 if bits == 64 else 32), bits)
    return narrowed(int(value), bits)


def _saturated(value: float, bits: int) -> int:
    if value != value:
        return 0
    limit = 1 << (bits - 1)
    return -limit if value <= -limit else limit - 1 if value >= limit else int(value)


def _floating(value: Any, target: pa.DataType) -> Decimal | float:
    if not isinstance(value, str):
        return value if isinstance(value, float | Decimal) else Decimal(int(value))
    found = _FLOAT.fullmatch(value.strip(_BLANKS))
    if found is None:
        raise out_of_range(value)
    sign = -1.0 if found[1] == "-" else 1.0
    if found["word"]:
        return sign * float("nan" if found["word"] == "NaN" else "inf")
    if found["hex"]:
        return sign * float.fromhex(found["hex"])
    if target == pa.float32():
        return Decimal(found[1] + found["decimal"])
    return sign * float(found["decimal"])


def out_of_range(value: str) -> CastError:
    """Returns the error of a text that is no number, or too large a one."""
    return CastError(f"Value ({value}) was out of range for requested data type")


def _from_text(array: pa.Array, target: pa.DataType, failures: Failures) -> pa.Array:
    if pa.types.is_boolean(target):
        return pc.equal(pc.ascii_lower(array), "true")
    if target in _BITS and pc.all(pc.fill_null(pc.match_substring_regex(array, _PLAIN_INTEGER), True)).as_py():
        try:
            return array.cast(pa.int64()).cast(target)
        except pa.ArrowInvalid:
            pass
    return _each(array, target, failures)


def _each(array: pa.Array, target: pa.DataType, failures: Failures) -> pa.Array:
    changed: list[Any] = []
    for row, value in enumerate(array.to_pylist()):
        try:
            changed.append(None if value is None else cast_value(value, target))
        except CastError as error:
            failures.add(row, error)
            changed.append(None)
    return pa.array(changed, target)


def numbers_of(array: pa.Array) -> pa.Array:
    """Returns the numbers behind moments, and 0 and 1 for false and true; other columns as they are."""
    if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("ms", array.type.tz)).cast(pa.int64())
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array


def _number(array: pa.Array, target: pa.DataType) -> pa.Array:
    mask = np.asarray(array.is_null()) if array.null_count else None
    found = np.asarray(array.fill_null(0) if array.null_count else array)
    with np.errstate(all="ignore"):
        if pa.types.is_boolean(target):
            result = np.abs(found) >= 1 if found.dtype.kind == "f" else found != 0
        elif pa.types.is_floating(target):
            result = found.astype(np.float32 if target == pa.float32() else np.float64)
        else:
            result = (_whole(found, target) if found.dtype.kind == "f" else found).astype(_NUMPY[target])
    return pa.array(result, target, mask=mask)


def _whole(found: Any, target: pa.DataType) -> Any:
    kind = np.int64 if target == pa.int64() else np.int32
    limits = np.iinfo(kind)
    found = found.astype(np.float64)
    low, high = found <= float(limits.min), found >= float(limits.max)
    result = np.where(low | high | np.isnan(found), 0, found).astype(kind)
    result[low], result[high] = limits.min, limits.max
    return result


def _to_text(array: pa.Array) -> pa.Array:
    source = array.type
    if pa.types.is_integer(source) or pa.types.is_boolean(source):
        return array.cast(pa.string())
    if pa.types.is_temporal(source):
        scale = DAY_MS if pa.types.is_date32(source) else 1
        numbers = numbers_of(array).to_pylist()
        return pa.array([None if n is None else values.format(Instant(n * scale)) for n in numbers], pa.string())
    plain = plain_doubles(array)
    if plain is not None:
        return plain
    found = array.to_pylist()
    if source == pa.float32():
        found = [None if value is None else Float32(value) for value in found]
    return pa.array([None if value is None else text_of(value) for value in found], pa.string())
