"""Records with schemas through a whole standalone worker: files → Avro, Protobuf and JSON Schema in Kafka → tables.

The registry is real, behind a proxy that can be closed; the worker is stopped in the middle; schemas change on the way.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from tests.support.pumps import everything
from tests.support.registry_proxy import Door, guarded
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.registry import LocalRegistry

LIMIT_S = 120.0
KINDS = {
    "avro": "io.confluent.connect.avro.AvroConverter",
    "proto": "io.confluent.connect.protobuf.ProtobufConverter",
    "json": "io.confluent.connect.json.JsonSchemaConverter",
}
ROWS = 2_000


def connectors(folder: Path, url: str) -> dict[str, dict[str, str]]:
    """For each kind a source of files and a sink into a table; Avro is the worker's own converter."""
    made: dict[str, dict[str, str]] = {}
    (folder / "bad").mkdir()
    for kind, class_name in KINDS.items():
        (folder / kind).mkdir()
        own = {"value.converter": class_name, "value.converter.schema.registry.url": url} if kind != "avro" else {}
        made[f"files-{kind}"] = {
            "connector.class": "wherry.spooldir.SpoolDirSource",
            "topic": f"flow-{kind}",
            "input.path": str(folder / kind),
            "error.path": str(folder / "bad"),
            "cleanup.policy": "none",
            "empty.poll.wait.ms": "200",
            "file.minimum.age.ms": "0",
            **own,
        }
        made[f"table-{kind}"] = {
            "connector.class": "Table",
            "topics": f"flow-{kind}",
            "database": str(folder / f"{kind}.sqlite"),
            "table.name.format": "rows",
            **own,
        }
    return made


def drop(folder: Path, name: str, header: str, *lines: str) -> None:
    """Puts a file into the directory of each kind, whole at once."""
    for kind in KINDS:
        part = folder / f"{name}.{kind}"
        part.write_text("\n".join([header, *lines, ""]))
        part.rename(folder / kind / f"{name}.csv")


def asked(database: Path, statement: str) -> list[tuple[object, ...]]:
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []  # no table or column yet, or locked


def arrived(folder: Path, count: int) -> bool:
    return all(asked(folder / f"{kind}.sqlite", "SELECT count(*) FROM rows") == [(count,)] for kind in KINDS)


def test_records_with_schemas_arrive_once_through_a_restart_new_schemas_and_a_lost_registry(
    kafka: EmbeddedKafka, registry: LocalRegistry, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as doors:
        door = doors.enter_context(guarded(registry.url))
        url = door.url(tls=False)
        settings = {
            "value.converter": KINDS["avro"],
            "value.converter.schema.registry.url": url,
            # Nobody helps when the registry is back.
            "wherry.restart.base.ms": "500",
            "wherry.restart.delay.max.ms": "2000",
            "wherry.restart.max": "-1",
        }
        lines = [f"{number},name {number},{number / 4}" for number in range(ROWS)]
        with Standalone(bootstrap=kafka.bootstrap, connectors=connectors(tmp_path, url), settings=settings) as worker:
            drop(tmp_path, "one", "id,name,price", *lines)
            assert eventually(lambda: arrived(tmp_path, ROWS), LIMIT_S), worker.log_tail()
            worker.stop()
            # More columns, while nobody runs.
            drop(tmp_path, "two", "id,name,price,city", *(f"{ROWS + n},name,0.5,Bern" for n in range(10)))
            worker.start()
            assert eventually(lambda: arrived(tmp_path, ROWS + 10), LIMIT_S), worker.log_tail()
            doors.close()
            drop(tmp_path, "three", "id,name,price,city,zip", "9000,last,1.5,Basel,4051")
            for kind in KINDS:
                assert eventually(lambda kind=kind: is_held_up(worker, f"files-{kind}"), LIMIT_S), worker.log_tail()  # type: ignore[misc]
            with guarded(registry.url, door=Door(port=door.port)):
                assert eventually(lambda: arrived(tmp_path, ROWS + 11), LIMIT_S), worker.log_tail()
    for kind in KINDS:
        database = tmp_path / f"{kind}.sqlite"
        assert asked(database, "SELECT count(DISTINCT id), sum(price) FROM rows WHERE id < 2000") == [
            (ROWS, sum(number / 4 for number in range(ROWS)))
        ]
        assert asked(database, "SELECT city, zip FROM rows WHERE id = 9000") == [("Basel", 4051)]
        assert asked(database, "SELECT DISTINCT city, zip FROM rows WHERE id = 2001") == [("Bern", None)]
        # One partition holds records of three schemas, each told by its id.
        ids = [message.value()[1:5] for message in everything(kafka.bootstrap, f"flow-{kind}")]
        assert len(set(ids)) == 3


def is_held_up(worker: Standalone, name: str) -> bool:
    """Whether a connector shows that something is wrong: a task that failed, or trouble that is told."""
    status = worker.rest.get(f"/connectors/{name}/status")
    failed = any(task["state"] == "FAILED" for task in status["tasks"])
    return failed or "schema registry at" in worker.log_path.read_text(errors="replace")[-20_000:]
