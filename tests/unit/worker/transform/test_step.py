"""The transforming step: predicates part batches, failures are cut out, marks and counts stay true."""

from __future__ import annotations

import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.position import Position
from wherry.worker.convert.step import Stage
from wherry.worker.transform.registry import Link, chain_of
from wherry.worker.transform.step import Transforms

P = "org.apache.kafka.connect.transforms."
HAS_HEADER = {"predicates": "p", "predicates.p.type": f"{P}predicates.HasHeaderKey", "predicates.p.name": "h"}


def at(offset: int) -> Position:
    return Position('{"p":0}', str(offset))


def loose(*texts: str | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))


def batch(value: pa.Array, *, marked: tuple[int, ...] = (), flagged: tuple[int, ...] = ()) -> Batch:
    """Rows of partition 0 from offset 10 on; those flagged have a header h."""
    headers = [[{"name": "h", "value": b"1"}] if row in flagged else None for row in range(len(value))]
    return of_value(
        value,
        constants=Constants("t", 0, 10),
        marks=tuple(Mark(row, at(row)) for row in marked),
        headers=pa.array(headers, HEADERS_TYPE) if flagged else None,
    )


def step(is_sink: bool = True, **config: str) -> Transforms:
    """A chain; double underscores stand for dots."""
    return Transforms(chain_of({key.replace("__", "."): value for key, value in config.items()}, is_sink=is_sink))


def guarded(kind: str, **config: str) -> Transforms:
    """One transform for the rows with header h."""
    keys = {f"transforms.a.{key}": value for key, value in config.items()}
    links = {"transforms": "a", "transforms.a.type": kind, "transforms.a.predicate": "p"}
    return Transforms(chain_of({**HAS_HEADER, **links, **keys}, is_sink=True))


def marks(found: Batch) -> list[tuple[int, Position]]:
    return [(mark.row_count, mark.position) for mark in found.marks]


def test_without_a_predicate_all_rows_are_transformed_as_one_batch() -> None:
    raw = batch(loose('{"a":1}', None, '{"b":2}'), marked=(1, 3))
    chain = step(transforms="a", transforms__a__type=f"{P}HoistField$Value", transforms__a__field="f")
    ((after, origin),) = chain.apply(raw, raw).pieces
    assert after.value.storage.to_pylist() == ['{"f":{"a":1}}', '{"f":null}', '{"f":{"b":2}}']
    assert origin is raw
    assert marks(after) == [(1, at(1)), (3, at(3))]
    assert after.constants == raw.constants


def test_filtered_rows_are_counted_and_move_the_position() -> None:
    raw = batch(loose("1", "2", "3", "4"), marked=(1, 2, 4), flagged=(1, 3))
    stepped = guarded(f"{P}Filter").apply(raw, raw)
    ((after, origin),) = stepped.pieces
    assert (stepped.filtered, stepped.failures) == (2, ())
    assert after.value.storage.to_pylist() == origin.value.storage.to_pylist() == ["1", "3"]
    assert after.column("offset").to_pylist() == origin.column("offset").to_pylist() == [10, 12]
    assert marks(after) == [(1, at(1)), (1, at(2)), (2, at(4))]


def test_when_all_rows_are_filtered_the_positions_are_kept() -> None:
    raw = batch(loose("1", "2"), marked=(2,))
    ((after, origin),) = step(transforms="a", transforms__a__type=f"{P}Filter").apply(raw, raw).pieces
    assert (after.num_rows, origin.num_rows) == (0, 0)
    assert marks(after) == [(0, at(2))]


def test_a_predicate_parts_a_batch_which_stays_one_when_the_schema_does() -> None:
    raw = batch(loose('{"a":1}', '{"a":2}', '{"a":3}'), marked=(3,), flagged=(0, 2))
    stepped = guarded(f"{P}ReplaceField$Value", renames="a:k").apply(raw, raw)
    ((after, origin),) = stepped.pieces
    assert after.value.storage.to_pylist() == ['{"k":1}', '{"a":2}', '{"k":3}']
    assert origin.num_rows == 3
    assert marks(after) == [(3, at(3))]
    assert after.column("offset").to_pylist() == [10, 11, 12]


def test_rows_of_other_schemas_come_as_runs_in_their_order() -> None:
    raw = batch(pa.array(["1", "2", "3", "4"]), marked=(1, 2, 4), flagged=(2,))
    stepped = guarded(f"{P}Cast$Value", spec="int32").apply(raw, raw)
    assert [(str(after.value.type), after.value.to_pylist()) for after, _ in stepped.pieces] == [
        ("string", ["1", "2"]),
        ("int32", [3]),
        ("string", ["4"]),
    ]
    assert [marks(after) for after, _ in stepped.pieces] == [[(1, at(1)), (2, at(2))], [], [(1, at(4))]]
    assert [origin.column("offset").to_pylist() for _, origin in stepped.pieces] == [[10, 11], [12], [13]]


def test_failed_rows_are_told_by_row_and_class_and_the_others_go_on() -> None:
    raw = batch(loose('{"a":"1"}', '{"a":"x"}', '{"a":"3"}', "5"), marked=(4,))
    cast = step(transforms="a", transforms__a__type=f"{P}Cast$Value", transforms__a__spec="a:int8")
    stepped = cast.apply(raw, raw)
    ((after, origin),) = stepped.pieces
    assert after.value.storage.to_pylist() == ['{"a":1}', '{"a":3}']
    assert origin.value.storage.to_pylist() == ['{"a":"1"}', '{"a":"3"}']
    assert marks(after) == [(2, at(4))]
    assert [(each.row, each.stage, each.executing, str(each.error)) for each in stepped.failures] == [
        (1, Stage.TRANSFORMATION, f"{P}Cast$Value", "Value (x) was out of range for requested data type"),
        (
            3,
            Stage.TRANSFORMATION,
            f"{P}Cast$Value",
            "Only Map objects supported in absence of schema for [cast types], found: java.lang.Long",
        ),
    ]
    assert stepped.filtered == 0


def test_rows_that_are_no_json_are_the_converters_failure() -> None:
    raw = batch(loose('{"a":1}', '{"a":'))
    stepped = step(transforms="a", transforms__a__type=f"{P}HoistField$Value", transforms__a__field="f").apply(raw, raw)
    assert [(each.row, each.stage) for each in stepped.failures] == [(1, Stage.VALUE_CONVERTER)]
    assert stepped.pieces[0][0].value.storage.to_pylist() == ['{"f":{"a":1}}']


def test_failed_and_filtered_rows_and_the_rest_add_up() -> None:
    raw = batch(loose('{"a":"1"}', '{"a":"x"}', '{"a":"2"}', '{"a":"y"}'), flagged=(2, 3))
    chain = chain_of(
        {
            **HAS_HEADER,
            "transforms": "f,c",
            "transforms.f.type": f"{P}Filter",
            "transforms.f.predicate": "p",
            "transforms.c.type": f"{P}Cast$Value",
            "transforms.c.spec": "a:int8",
        },
        is_sink=True,
    )
    stepped = Transforms(chain).apply(raw, raw)
    rows = sum(piece.num_rows for piece, _ in stepped.pieces)
    assert (rows, stepped.filtered, len(stepped.failures)) == (1, 2, 1)


def test_another_topic_leaves_the_positions_alone() -> None:
    raw = batch(loose("1", "2"), marked=(2,), flagged=(1,))
    stepped = guarded(f"{P}RegexRouter", regex="t", replacement="u").apply(raw, raw)
    ((after, origin),) = stepped.pieces
    assert after.column("topic").to_pylist() == ["t", "u"]
    assert origin.column("topic").to_pylist() == ["t", "t"]
    assert marks(after) == [(2, at(2))]
    assert after.column("offset").to_pylist() == [10, 11]


def test_predicates_see_what_earlier_transforms_left() -> None:
    raw = batch(loose("1"))
    chain = chain_of(
        {
            "predicates": "p",
            "predicates.p.type": "TopicNameMatches",
            "predicates.p.pattern": "new",
            "transforms": "r,f",
            "transforms.r.type": "RegexRouter",
            "transforms.r.regex": ".*",
            "transforms.r.replacement": "new",
            "transforms.f.type": "Filter",
            "transforms.f.predicate": "p",
        },
        is_sink=True,
    )
    assert Transforms(chain).apply(raw, raw).filtered == 1


def test_a_whole_schema_that_cannot_be_built_fails_every_row() -> None:
    raw = batch(pa.array([{"a": 1}, None, {"a": 2}], pa.struct([("a", pa.int32())])))
    chain = step(
        transforms="a",
        transforms__a__type=f"{P}InsertField$Value",
        transforms__a__static__field="a",
        transforms__a__static__value="v",
    )
    stepped = chain.apply(raw, raw)
    assert [failure.row for failure in stepped.failures] == [0, 2]
    assert stepped.pieces[0][0].value.to_pylist() == [None]


def test_a_batch_without_rows_goes_through() -> None:
    raw = batch(loose(), marked=(0,))
    assert step(transforms="a", transforms__a__type=f"{P}Filter").apply(raw, raw).pieces == ((raw, raw),)


def test_a_value_that_nobody_thought_of_fails_alone() -> None:
    class Picky:
        class_name = "x.Picky"

        def apply(self, rows):  # type: ignore[no-untyped-def]
            if 7 in rows.value.objects:
                raise OverflowError("seven is too much")
            return rows

    raw = batch(loose("1", "7", "3", "7", "5"), marked=(5,))
    stepped = Transforms([Link("a", Picky())]).apply(raw, raw)
    assert [(each.row, str(each.error)) for each in stepped.failures] == [
        (1, "OverflowError: seven is too much"),
        (3, "OverflowError: seven is too much"),
    ]
    assert stepped.pieces[0][0].value.storage.to_pylist() == ["1", "3", "5"]


def test_texts_with_half_a_pair_of_surrogates_and_long_numbers_come_out_as_json() -> None:
    raw = batch(loose('{"\\ud800":"\\udc00","n":18446744073709551617,"x":1e400,"y":-0.0}'))
    chain = step(transforms="a", transforms__a__type=f"{P}HoistField$Value", transforms__a__field="f")
    ((after, _),) = chain.apply(raw, raw).pieces
    assert after.value.storage.to_pylist() == ['{"f":{"\\uD800":"\\uDC00","n":1,"x":"Infinity","y":0.0}}']


def structs(*values: int | None) -> Batch:
    """Structs of one required number; None is a tombstone, for the schema allows no null."""
    kind = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    rows = pa.array([None if value is None else {"a": value} for value in values], kind)
    schema = pa.schema([pa.field("value", kind, nullable=False)])
    return Batch(pa.RecordBatch.from_arrays([rows], schema=schema), Constants("t", 0, 10), (Mark(len(rows), at(1)),))


def test_a_tombstone_beside_structs_passes_where_a_struct_lacks_the_field() -> None:
    chain = step(transforms="a", transforms__a__type=f"{P}ExtractField$Value", transforms__a__field="nope")
    raw = structs(1, None, 2)
    stepped = chain.apply(raw, raw)
    assert [(failure.row, str(failure.error)) for failure in stepped.failures] == [
        (0, "Unknown field: nope"), (2, "Unknown field: nope"),
    ]  # fmt: skip
    ((after, _),) = stepped.pieces
    assert after.num_rows == after.value.null_count == 1


def test_a_tombstone_beside_structs_is_told_to_have_no_schema() -> None:
    chain = step(transforms="a", transforms__a__type=f"{P}MaskField$Value", transforms__a__fields="a")
    raw = structs(1, None)
    (failure,) = chain.apply(raw, raw).failures
    assert str(failure.error) == "Only Map objects supported in absence of schema for [mask fields], found: null"


def test_tombstones_that_pass_stay_in_one_batch_with_the_structs() -> None:
    chain = step(transforms="a", transforms__a__type=f"{P}Cast$Value", transforms__a__spec="a:string")
    raw = structs(None, 1, None, 2)
    ((after, origin),) = chain.apply(raw, raw).pieces
    assert after.value.to_pylist() == [None, {"a": "1"}, None, {"a": "2"}]
    assert origin is raw
    assert marks(after) == [(4, at(1))]


def test_what_becomes_of_a_tombstone_in_a_map_of_its_own_stands_in_a_batch_of_its_own() -> None:
    chain = step(transforms="a", transforms__a__type=f"{P}HoistField$Value", transforms__a__field="f")
    raw = structs(1, None)
    pieces = [piece for piece, _ in chain.apply(raw, raw).pieces]
    assert [piece.num_rows for piece in pieces] == [1, 1]
    assert pieces[1].value.storage.to_pylist() == ['{"f":null}']
