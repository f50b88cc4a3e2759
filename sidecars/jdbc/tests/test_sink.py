"""When rows and positions of the sink become visible in a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE, Constants, Mark
from wherry.contract.position import Position, compact_json
from wherry.sdk import Batch, Context, SinkTask
from wherry_jdbc.config import ConfluentConfig
from wherry_jdbc.database import Database
from wherry_jdbc.sink import ConfluentJdbcSink

PLACE = {"file": "a"}


def at(line: int) -> Position:
    return Position.of(PLACE, {"line": line})


def opened(server: str) -> tuple[ConfluentJdbcSink, list[Position]]:
    url = f"jdbc:postgresql://{server.partition('@')[2]}"
    config = ConfluentConfig.parse({"connection.url": url, "connection.user": "postgres", "auto.create": "true",
                                    "auto.evolve": "true"})  # fmt: skip
    sink = ConfluentJdbcSink(config, Context("c", 1))
    return sink, list(sink.open(SinkTask("c", partitions=[PLACE])))


def batch(text: str, *marks: Mark) -> Batch:
    value = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array([text], pa.string()))
    return Batch(value=value, constants=Constants(topic="orders"), marks=list(marks))


def visible(database: Database) -> list[Any]:
    found = database.execute("SELECT to_regclass('orders') IS NOT NULL")
    there = database.execute("SELECT i FROM orders ORDER BY i") if found[0][0] in (True, "t") else []
    database.commit()
    return [int(row[0]) for row in there]


def test_pieces_of_a_cut_batch_become_visible_with_the_mark_that_covers_them(server: str, database: Database) -> None:
    sink, stored = opened(server)
    assert stored == []
    assert sink.write_batch(batch('{"i":1}')) == []
    assert sink.write_batch(batch('{"i":2,"more":"x"}')) == []
    assert visible(database) == []
    assert sink.write_batch(batch('{"i":3}', Mark(1, at(3)))) == []
    assert visible(database) == [1, 2, 3]
    sink.close()


def test_what_no_mark_covered_is_gone_after_a_crash_and_comes_again(server: str, database: Database) -> None:
    sink, _ = opened(server)
    sink.write_batch(batch('{"i":1}', Mark(1, at(1))))
    sink.write_batch(batch('{"i":2}'))
    sink.close()
    sink, stored = opened(server)
    assert [(compact_json(PLACE), position.offset) for position in stored] == [(stored[0].partition, at(1).offset)]
    assert visible(database) == [1]
    sink.write_batch(batch('{"i":2}'))
    sink.flush(True)
    sink.close()
    assert visible(database) == [1, 2]
