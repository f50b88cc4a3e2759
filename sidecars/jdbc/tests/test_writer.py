"""What lands in a real PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE, Batch, Constants
from wherry.contract.errors import FencedError, SchemaError
from wherry.contract.position import kafka_position
from wherry_jdbc.database import Database
from wherry_jdbc.positions import PositionTable
from wherry_jdbc.settings import InsertMode, KeyMode, Settings
from wherry_jdbc.tables import TableName
from wherry_jdbc.writer import TableWriter

PLAIN = Settings(
    url="",
    user=None,
    password=None,
    insert_mode=InsertMode.INSERT,
    key_mode=KeyMode.NONE,
    key_fields=(),
    table_format="${topic}",
    table_by_topic={},
    create=True,
    evolve=True,
    deletes=False,
    fold_case=False,
    dots_to_underscores=False,
    unwrap_change_events=False,
    fields_include=frozenset(),
    fields_exclude=frozenset(),
    positions_table="wherry_positions",
    rows_per_copy_max=10_000,
)
PARTITION = '{"kafka_topic":"orders","kafka_partition":0}'


def settings(**changes: Any) -> Settings:
    return replace(PLAIN, **changes)


def batch(values: list[Any], keys: list[Any] | None = None, *, topic: str = "orders", schema: Any = None) -> Batch:
    columns = {"value": pa.array(values, schema)}
    if keys is not None:
        columns["key"] = pa.array(keys)
    return Batch(pa.RecordBatch.from_pydict(columns), Constants(topic=topic, partition=0))


def json_batch(texts: list[str | None], keys: list[Any] | None = None) -> Batch:
    values = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))
    columns: dict[str, pa.Array] = {"value": values} | ({} if keys is None else {"key": pa.array(keys)})
    return Batch(pa.RecordBatch.from_pydict(columns), Constants(topic="orders", partition=0))


def writer(database: Database, chosen: Settings | None = None, positions: PositionTable | None = None) -> TableWriter:
    return TableWriter(database, chosen or settings(), positions)


def rows(database: Database, sql: str = 'SELECT * FROM "orders" ORDER BY 1') -> list[tuple[Any, ...]]:
    found = database.execute(sql)
    database.commit()
    return found


def test_a_table_is_created_from_the_schema_and_filled(database: Database) -> None:
    schema = pa.struct(
        [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("at", pa.timestamp("ms", "UTC"))]
    )
    assert writer(database).write(batch([{"id": 1, "name": "a", "at": 1_700_000_000_000}], schema=schema)) == []
    assert rows(database) == [(1, "a", datetime(2023, 11, 14, 22, 13, 20))]
    kinds = rows(
        database, "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name='orders'"
    )
    assert sorted(kinds) == [
        ("at", "timestamp without time zone", "YES"),
        ("id", "bigint", "NO"),
        ("name", "text", "YES"),
    ]


def test_names_that_look_like_sql_are_only_names(database: Database) -> None:
    odd = 'x"; DROP TABLE orders; --'
    writer(database).write(batch([{odd: 1}], topic=odd.replace(".", "")))
    assert rows(database, f"SELECT * FROM {TableName(None, odd).sql}") == [(1,)]


def test_a_new_field_becomes_a_column(database: Database) -> None:
    out = writer(database)
    out.write(batch([{"id": 1}]))
    out.write(batch([{"id": 2, "more": "x"}]))
    assert rows(database) == [(1, None), (2, "x")]


def test_a_new_field_is_refused_when_the_table_may_not_change(database: Database) -> None:
    writer(database).write(batch([{"id": 1}]))
    with pytest.raises(SchemaError, match="no column more"):
        writer(database, settings(evolve=False)).write(batch([{"id": 2, "more": "x"}]))


def test_a_missing_table_is_refused_when_none_may_be_created(database: Database) -> None:
    with pytest.raises(SchemaError, match=r"orders.*doesn't exist"):
        writer(database, settings(create=False)).write(batch([{"id": 1}]))


UPSERT = {"insert_mode": InsertMode.UPSERT, "key_mode": KeyMode.RECORD_KEY}


def test_an_upsert_keeps_the_last_value_of_a_key(database: Database) -> None:
    out = writer(database, settings(**UPSERT))
    out.write(batch([{"v": "a"}, {"v": "b"}, {"v": "c"}], [{"id": 1}, {"id": 2}, {"id": 1}]))
    out.write(batch([{"v": "d"}], [{"id": 2}]))
    assert rows(database) == [(1, "c"), (2, "d")]


def test_a_null_value_deletes_its_key_in_the_order_of_the_records(database: Database) -> None:
    out = writer(database, settings(deletes=True, **UPSERT))
    out.write(batch([{"v": "a"}, {"v": "b"}, {"v": "c"}], [{"id": 1}, {"id": 2}, {"id": 3}]))
    out.write(
        batch([None, None, {"v": "again"}], [{"id": 1}, {"id": 2}, {"id": 2}], schema=pa.struct([("v", pa.string())]))
    )
    assert rows(database) == [(2, "again"), (3, "c")]


def test_an_update_leaves_unknown_keys_away(database: Database) -> None:
    writer(database, settings(**UPSERT)).write(batch([{"v": "a"}], [{"id": 1}]))
    update = settings(insert_mode=InsertMode.UPDATE, key_mode=KeyMode.RECORD_KEY)
    writer(database, update).write(batch([{"v": "b"}, {"v": "c"}], [{"id": 1}, {"id": 9}]))
    assert rows(database) == [(1, "b")]


def test_bad_rows_are_found_and_the_others_written(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, name varchar(3))")
    database.commit()
    values = [{"id": i, "name": "long" if i in (3, 77) else "ok"} for i in range(100)]
    errors = writer(database).write(batch(values))
    assert [error.row for error in errors] == [3, 77]
    assert "too long" in errors[0].message
    assert rows(database, "SELECT count(*) FROM orders") == [(98,)]


def test_a_number_that_does_not_fit_the_column_is_an_error_of_its_row(database: Database) -> None:
    database.execute("CREATE TABLE orders (id smallint)")
    database.commit()
    errors = writer(database).write(batch([{"id": 1}, {"id": 70_000}, {"id": 2}]))
    assert [error.row for error in errors] == [1]
    assert rows(database) == [(1,), (2,)]


def test_json_without_a_schema_takes_the_types_of_the_table(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int, price numeric(8,2), tags jsonb, uid uuid)")
    database.commit()
    text = '{"id":1,"price":9.5,"tags":["a"],"uid":"6f9619ff-8b86-d011-b42d-00cf4fc964ff"}'
    errors = writer(database).write(json_batch([text, '{"id":2', '{"id":3,"uid":"x"}']))
    assert [error.row for error in errors] == [1, 2]
    assert rows(database, "SELECT id, price::text, tags->>0, uid::text FROM orders") == [
        (1, "9.50", "a", "6f9619ff-8b86-d011-b42d-00cf4fc964ff")
    ]


def test_nested_values_become_jsonb(database: Database) -> None:
    writer(database).write(batch([{"id": 1, "nested": {"a": [1, 2]}}]))
    assert rows(database, "SELECT nested->'a'->>1 FROM orders") == [("2",)]


def test_a_value_that_is_no_structure_is_an_error_of_its_row(database: Database) -> None:
    errors = writer(database).write(batch([1, 2]))
    assert [(error.row, error.reason) for error in errors] == [(0, "NOT_A_ROW"), (1, "NOT_A_ROW")]


def positions(database: Database, generation: int) -> PositionTable:
    table = PositionTable(database, TableName(None, "wherry_positions"), "shop", generation)
    table.create()
    return table


def test_positions_are_stored_with_the_rows_and_come_back_at_the_next_claim(database: Database) -> None:
    first = positions(database, 1)
    assert first.claim([PARTITION]) == []
    writer(database, positions=first).write(batch([{"id": 1}]), [kafka_position("orders", 0, 1)])
    assert positions(database, 2).claim([PARTITION]) == [kafka_position("orders", 0, 1)]


def test_an_older_generation_can_write_nothing_any_more(database: Database) -> None:
    old = positions(database, 1)
    old.claim([PARTITION])
    positions(database, 2).claim([PARTITION])
    writer(database).write(batch([{"id": 1}]))
    with pytest.raises(FencedError):
        writer(database, positions=old).write(batch([{"id": 2}]), [kafka_position("orders", 0, 2)])
    with pytest.raises(FencedError):
        positions(database, 1).claim([PARTITION])
    assert rows(database) == [(1,)]


def test_a_stream_whose_partitions_another_has_claimed_can_write_nothing_any_more(database: Database) -> None:
    """A worker dies while its rows are on their way; the one that takes its place has the same generation."""
    left = positions(database, 1)
    left.claim([PARTITION])
    writer(database, positions=left).write(batch([{"id": 1}]), [kafka_position("orders", 0, 1)])
    taking = positions(database, 1)
    assert taking.claim([PARTITION]) == [kafka_position("orders", 0, 1)]
    with pytest.raises(FencedError):
        writer(database, positions=left).write(batch([{"id": 2}]), [kafka_position("orders", 0, 2)])
    writer(database, positions=taking).write(batch([{"id": 2}]), [kafka_position("orders", 0, 2)])
    assert rows(database) == [(1,), (2,)]
