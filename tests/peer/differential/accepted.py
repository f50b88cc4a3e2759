"""The differences that are accepted, each with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from tests.peer.differential.cases import Case
from tests.peer.differential.play import Written
from tests.peer.differential.report import Difference

from wherry.worker.transform.dateformat import DateFormat

ADDRESS = b"[B@"
NUMBER = re.compile(rb"-?\d+\.\d+(?:[eE][+-]?\d+)?")
ISO = re.compile(rb"([+-]?\d{4,})-(\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z")
SINGLE_DIGITS_MAX = 9
CYCLE_MS = 146_097 * 86_400_000
_JAVA = DateFormat("EEE MMM dd HH:mm:ss 'UTC' yyyy")
NUMBER_OR_WHOLE = re.compile(rb"-?\d+(?:\.\d+)?")
DECIMAL = "org.apache.kafka.connect.data.Decimal"
_UNWRITABLE = {"unwritable": True}
MESSAGE = "__connect.errors.exception.message"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A difference that is wanted, or that cannot be helped.

    Attributes:
        reason: Why.
        covers: Tells whether a difference is this one.
    """

    reason: str
    covers: Callable[[Difference], bool]


def _is_address(difference: Difference) -> bool:
    one, other = difference.connect, difference.wherry
    return _texts(one, other) and one == ADDRESS


def _is_same_json(difference: Difference) -> bool:
    """Bare JSON that says the same: blanks, escapes and the form of fractions aside."""
    if difference.part != "written":
        return False
    return all(one == other or _is_same_bare(one, other) for one, other in _pairs_of(difference))


_NONE: Any = object()


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, bytes) else _NONE
    except ValueError:
        return _NONE


def _schema_of(value: Any) -> Any:
    """The schema of JSON in an envelope; None where there is none, or no envelope."""
    return value["schema"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else None


def _is_same_bare(one: Any, other: Any) -> bool:
    values = [_parsed(text) for text in (one, other)]
    return _NONE not in values and not any(map(_schema_of, values)) and _says_the_same(None, *values)


def _is_same_schematic(one: Any, other: Any) -> bool:
    """Whether two texts of JSON have one schema, and payloads that differ in the order of maps alone."""
    values = [_parsed(text) for text in (one, other)]
    schemas = [_schema_of(value) for value in values]
    if not all(isinstance(schema, dict) for schema in schemas) or json.dumps(schemas[0]) != json.dumps(schemas[1]):
        return False
    return _says_the_same(schemas[0], *(value["payload"] for value in values))


def _says_the_same(schema: Any, one: Any, other: Any) -> bool:
    """Whether two parsed values of a schema are the same; objects without a schema have no order, nor have maps."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    objects = isinstance(one, dict) and isinstance(other, dict)
    if kind == "struct" and objects:
        fields = {field["field"]: field for field in schema["fields"]}
        return [*one] == [*other] and all(_says_the_same(fields[name], one[name], other[name]) for name in one)
    if kind == "map" and objects:
        return one.keys() == other.keys() and all(_says_the_same(schema["values"], one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        if kind == "map":  # pairs, whose keys are no texts
            one, other = (sorted(pairs, key=json.dumps) for pairs in (one, other))
        items = schema["items"] if kind == "array" else None
        return len(one) == len(other) and all(map(_says_the_same, [items] * len(one), one, other))
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _pairs_of(difference: Difference) -> list[tuple[Any, Any]]:
    return _pairs(difference.connect, difference.wherry)


def _is_order(difference: Difference) -> bool:
    return all(_is_same_map(one, other) for one, other in _pairs_of(difference))


def _is_same_map(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if not _texts(one, other):
        return False
    if _is_same_bare(one, other) or _is_same_schematic(one, other):
        return True
    if _NONE not in map(_parsed, (one, other)):
        one, other = (NUMBER.sub(_single, text) for text in (one, other))
        return _is_same_bare(one, other)
    return _is_map(one) and _entries(one) == _entries(other)


def _entries(text: bytes) -> list[bytes]:
    """What stands between brackets and commas, sorted: names stay with their values."""
    return sorted(part.strip() for part in re.split(rb"[][{},]", NUMBER.sub(_single, text)))


def _single(number: re.Match[bytes]) -> bytes:
    return _single_of(number[0])


def _single_of(number: bytes) -> bytes:
    """The number, as exact as single precision is, if it can be one: see `_is_longer_float`."""
    return repr(np.float32(float(number))).encode() if _may_be_single(number) else number


def _may_be_single(number: bytes) -> bool:
    """Whether a number has no more digits than Java prints of one of single precision."""
    digits = re.sub(rb"[eE].*|[-.]", b"", number).strip(b"0")
    return len(digits) <= SINGLE_DIGITS_MAX


def _is_map(text: bytes) -> bool:
    """Whether it is the text of a map; of a struct the order of the fields is told by its schema."""
    return b"{" in text and not text.startswith(b"Struct{") and b'"schema":{' not in text


def _is_date_of_a_map(difference: Difference) -> bool:
    one, other = difference.connect, difference.wherry
    if not _texts(one, other) or one == other or not _is_map(one):
        return False
    # Entries of such a map come in another order, too: see `_is_order`.
    return _is_same_map(one, ISO.sub(_as_java, other))


def _as_java(moment: re.Match[bytes]) -> bytes:
    """A moment as Java prints it: in an older calendar before 1582, and without the era of its year."""
    cycles = (int(moment[1]) - 2000) // 400
    within = datetime.fromisoformat(f"{int(moment[1]) - cycles * 400}-{moment[2].decode()}+00:00")
    return _JAVA.format(round(within.timestamp()) * 1000 + cycles * CYCLE_MS).encode()


def _is_unwritable_date(difference: Difference) -> bool:
    """A date in a map, where Kafka Connect's own JSON can't show what its sink was given; all else is the same."""
    one, other = difference.connect, difference.wherry
    if difference.part != "lines" or not difference.case.shows_records or not _texts(one, other):
        return False
    shown, ours = json.loads(one), json.loads(other)
    hidden = [side for side in ("key", "value") if shown[side] == _UNWRITABLE and shown[side] != ours[side]]
    dates = [ours[side] for side in hidden if ours[side] is not None and ours[side].get("schema") is None]
    alike = {**shown, **{side: ours[side] for side in hidden}} == ours
    return bool(hidden) and alike and len(dates) == len(hidden) and all(ISO.search(_bytes(date)) for date in dates)


def _is_masked_decimal(difference: Difference) -> bool:
    """A decimal that one of another scale was put in the place of, which Kafka Connect can't write, or prints so."""
    if not _masks_decimals(difference.case):
        return False
    one, other = difference.connect, difference.wherry
    if difference.part == "state":
        return bool(one[0] == "FAILED" and other[0] == "RUNNING")
    if difference.part == "written":
        written, ours = difference.both
        rest = iter(ours)  # Kafka Connect skipped those with a decimal and wrote all others
        return all(any(record == each for each in rest) for record in written) and len(written) < len(ours)
    if difference.part != "lines" or not _texts(one, other):
        return False
    if not difference.case.shows_records:
        return NUMBER_OR_WHOLE.sub(b"#", one) == NUMBER_OR_WHOLE.sub(b"#", other)
    shown, ours = json.loads(one), json.loads(other)
    return all(shown[part] in (ours[part], _UNWRITABLE) for part in shown)


def _masks_decimals(case: Case) -> bool:
    """Whether a mask puts a number of another scale in the place of a decimal of the records."""
    for key, value in case.config.items():
        step = key.removesuffix(".type")
        if not value.endswith(("MaskField$Value", "MaskField$Key")) or f"{step}.replacement" not in case.config:
            continue
        scale = len(case.config[f"{step}.replacement"].partition(".")[2])
        names = {name.strip() for name in case.config.get(f"{step}.fields", "").split(",")}
        found = _decimals([each.value or b"" for each in case.records] + [each.encode() for each in case.lines])
        found |= _decimals([each.key or b"" for each in case.records])
        if any(name in names and scale != its for name, its in found):
            return True
    return False


def _decimals(texts: list[bytes]) -> set[tuple[str, int]]:
    """The fields of texts of JSON whose schema is a decimal, each with its scale."""
    found: set[tuple[str, int]] = set()

    def look(at: Any) -> None:
        if isinstance(at, dict):
            if at.get("name") == DECIMAL and "field" in at:
                found.add((at["field"], int(at["parameters"]["scale"])))
            for each in at.values():
                look(each)
        elif isinstance(at, list):
            for each in at:
                look(each)

    for text in texts:
        try:
            look(json.loads(text))
        except ValueError:
            continue
    return found


def _is_null_of_a_schema(difference: Difference) -> bool:
    """A null that has a schema, on one side at least, and nothing else."""
    if difference.part != "written" or not isinstance(difference.wherry, Written):
        return False
    pairs = [pair for pair in _pairs_of(difference) if pair[0] != pair[1]]
    return all(other is None and _is_written_null(one) for one, other in pairs)


def _is_written_null(value: Any) -> bool:
    return value == b"null" or (isinstance(value, bytes) and value.endswith(b'"payload":null}'))


def _is_longer_float(difference: Difference) -> bool:
    """The same numbers, some of them with a digit more than is needed."""
    for one, other in _pairs_with_headers(difference.connect, difference.wherry):
        if one == other:
            continue
        if not _texts(one, other) or NUMBER.sub(b"#", one) != NUMBER.sub(b"#", other):
            return False
        for mine, theirs in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            if _single_of(mine) != _single_of(theirs):
                return False
    return True


def _is_other_masked_field(difference: Difference) -> bool:
    one, other = (_message(record) for record in (difference.connect, difference.wherry))
    return _MASKED.fullmatch(one) is not None and _MASKED.fullmatch(other) is not None


_MASKED = re.compile(rb"Cannot mask value of type class [\w.]+ with custom replacement\.")


def _is_path_of_a_later_version(difference: Difference) -> bool:
    """A path of several steps for ValueToKey."""
    config = difference.case.config
    names = [key.removesuffix(".type") for key, value in config.items() if value.endswith(".ValueToKey")]
    return any(
        config.get(f"{name}.field.syntax.version", "V1").upper() == "V2" and "." in config.get(f"{name}.fields", "")
        for name in names
    )


def _is_printed_record(difference: Difference) -> bool:
    if difference.part != "why":
        return False
    fault, printed, _ = str(difference.connect).partition(_RECORD)
    return bool(printed) and fault in difference.wherry


_RECORD = ": SourceRecord{"


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "Kafka Connect prints the whole record into the trace, contents and all; we name what is wrong with it.",
        _is_printed_record,
    ),
    Accepted(
        "ValueToKey of 4.3 knows no `field.syntax.version` and takes a path for a name; we read it as later ones do.",
        _is_path_of_a_later_version,
    ),
    Accepted(
        "JSON without a schema that no step looked into goes on as its source wrote it, byte for byte.",
        _is_same_json,
    ),
    Accepted(
        "Java prints the address of an array of bytes; ours prints the text it holds or, in a struct, how long it is.",
        _is_address,
    ),
    Accepted(
        "A null in a column is a tombstone, whatever its schema: written as a text it would delete nothing.",
        _is_null_of_a_schema,
    ),
    Accepted(
        "A replacement for decimals is brought to their scale; Kafka Connect makes a value that breaks its schema.",
        _is_masked_decimal,
    ),
    Accepted(
        "A date that a transform puts into a map has no schema, and reaches a sink as the text of its moment.",
        _is_date_of_a_map,
    ),
    Accepted(
        "A date that a transform puts into a map is more than Kafka Connect's JSON can show of what a sink is given.",
        _is_unwritable_date,
    ),
    Accepted(
        "Entries of a map without a schema come in the order of Java's hash tables, which follows from how large each "
        "transform happened to make its table; a map has no order.",
        _is_order,
    ),
    Accepted(
        "Java 17 prints some numbers of single precision with a digit more than is needed; we print as Java 19 does.",
        _is_longer_float,
    ),
    Accepted(
        "Which of several fields that can't be masked is told first follows a hash set in Java.",
        _is_other_masked_field,
    ),
)


def reason_for(difference: Difference) -> str | None:
    """Returns why a difference is accepted; None when it is not.

    A record may differ in its key for one reason and in its value for another.
    """
    reason = next((each.reason for each in ACCEPTED if each.covers(difference)), None)
    if reason is not None:
        return reason
    reasons = [next((each.reason for each in ACCEPTED if each.covers(part)), None) for part in _parts(difference)]
    found = [reason for reason in dict.fromkeys(reasons) if reason is not None]
    return " ".join(found) if len(reasons) > 1 and None not in reasons else None


def _parts(difference: Difference) -> list[Difference]:
    """Differences of the columns of a record that differ, each as if it were the only one."""
    one, other = difference.connect, difference.wherry
    if not isinstance(one, Written) or not isinstance(other, Written):
        return []
    names = [name for name in one._fields if getattr(one, name) != getattr(other, name)]
    return [replace(difference, wherry=one._replace(**{name: getattr(other, name)})) for name in names]


def _texts(*values: Any) -> bool:
    return all(isinstance(value, bytes) for value in values)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """The parts of two lines or records, side by side."""
    if isinstance(one, Written) and isinstance(other, Written):
        return [*zip(one, other, strict=True)]
    return [(one, other)]


def _pairs_with_headers(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """The same, header by header where they have the same names."""
    if not isinstance(one, Written) or not isinstance(other, Written):
        return [(one, other)]
    names = [[name for name, _ in record.headers] for record in (one, other)]
    if names[0] != names[1]:
        return [(one, other)]
    values = [[value for _, value in record.headers] for record in (one, other)]
    return [*_pairs(one._replace(headers=()), other._replace(headers=())), *zip(*values, strict=True)]


def _message(record: Any) -> bytes:
    headers = dict(record.headers) if isinstance(record, Written) else {}
    return headers.get(MESSAGE) or b""
