"""Sinks of a whole worker: topics that appear while it runs, bytes as they are, rows staged when it is killed."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.support.pumps import fill
from tests.support.standalone import Standalone
from tests.support.topics import create_topic, group_offsets
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka

PLUGINS = Path(__file__).parent / "plugins"
FLOW_TIMEOUT_S = 120.0
INTEGERS = "org.apache.kafka.connect.converters.IntegerConverter"


@pytest.fixture(scope="module")
def worker(kafka: EmbeddedKafka) -> Iterator[Standalone]:
    """A worker with the plugins of these tests."""
    with Standalone(bootstrap=kafka.bootstrap, settings={"plugin.path": str(PLUGINS)}) as running:
        yield running


def create(worker: Standalone, name: str, config: Mapping[str, str]) -> None:
    answer = worker.rest.call("POST", "/connectors", {"name": name, "config": dict(config)})
    assert answer.status == 201, answer.body


def staging(folder: Path, **config: str) -> Mapping[str, str]:
    for each in ("staged", "done"):
        (folder / each).mkdir(parents=True)
    return {"connector.class": "wherry.test.StagingSink", "tasks.max": "1", "folder": str(folder), **config}


def done(folder: Path) -> list[str]:
    """Every line that is seen, in no order."""
    return sorted(line for path in (folder / "done").iterdir() for line in path.read_text().splitlines())


def test_topics_that_appear_and_partitions_that_are_added_are_read_while_the_sink_runs(
    worker: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    prefix = f"grown-{tmp_path.name}"
    regex = {"topics.regex": rf"\Q{prefix}\E-\p{{Lower}}+"}
    create(worker, "grower", staging(tmp_path, **regex))
    create_topic(bootstrap, f"{prefix}-a")
    create_topic(bootstrap, f"{prefix}-A")
    for topic in ("a", "A"):
        fill(bootstrap, f"{prefix}-{topic}", [b"%s%d" % (topic.encode(), number) for number in range(10)])
    assert eventually(lambda: len(done(tmp_path)) == 10, FLOW_TIMEOUT_S), worker.log_tail()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(f"{prefix}-a", 2)])[f"{prefix}-a"].result(60)
    create_topic(bootstrap, f"{prefix}-b")
    assert eventually(lambda: len(admin.list_topics(f"{prefix}-a", timeout=60).topics[f"{prefix}-a"].partitions) == 2)
    fill(bootstrap, f"{prefix}-a", [b"more%d" % number for number in range(10)], partitions=2)
    fill(bootstrap, f"{prefix}-b", [b"b%d" % number for number in range(10)])
    assert eventually(lambda: len(done(tmp_path)) >= 30, FLOW_TIMEOUT_S), worker.log_tail()
    found = [line.partition(":")[2] for line in done(tmp_path)]
    assert sorted(found) == sorted([f"{name}{number}" for name in ("a", "more", "b") for number in range(10)])


def test_a_topic_that_is_deleted_and_made_anew_disturbs_nothing_and_is_read_again(
    worker: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    """As with Kafka Connect the task runs on; what comes when there is no such topic must not end its process."""
    kept, gone = (create_topic(bootstrap, f"{name}-{tmp_path.name}") for name in ("kept", "gone"))
    create(worker, "unmoved", staging(tmp_path, topics=f"{kept},{gone}"))
    fill(bootstrap, gone, [b"old%d" % number for number in range(10)])
    fill(bootstrap, kept, [b"a"])
    assert eventually(lambda: len(done(tmp_path)) == 11, FLOW_TIMEOUT_S), worker.log_tail()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([gone])[gone].result(60)
    for number in range(8):  # so that a lease reads beside what is missing
        fill(bootstrap, kept, [b"b%d" % number])
        assert eventually(lambda count=12 + number: len(done(tmp_path)) == count, FLOW_TIMEOUT_S), worker.log_tail()  # type: ignore[misc]
        time.sleep(0.5)
    create_topic(bootstrap, gone)
    fill(bootstrap, gone, [b"new"])
    assert eventually(lambda: len(done(tmp_path)) == 20, FLOW_TIMEOUT_S), worker.log_tail()
    status = worker.rest.call("GET", "/connectors/unmoved/status").body
    assert status["tasks"][0]["state"] == "RUNNING"
    restarts = worker.rest.call("GET", "/wherry/v1/restarts").body
    assert "unmoved" not in str(restarts)


def test_a_sink_that_converts_by_itself_gets_the_bytes_of_records_whatever_the_converters_are(
    worker: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(bootstrap, f"plain-{tmp_path.name}")
    records = [
        {"value": b"\xff{damaged", "key": b"\x00\x01", "headers": [("h", b"\xfe"), ("none", None)]},
        {"value": None, "key": None},
        {"value": b"", "key": b"k"},
    ]
    producer = Producer({"bootstrap.servers": bootstrap})
    for record in records:
        producer.produce(topic, **record)  # type: ignore[arg-type]
    assert producer.flush(60) == 0
    out = tmp_path / "out.txt"
    own = {"value.converter": "com.example.OwnConverter", "key.converter": INTEGERS}
    config = {"connector.class": "wherry.test.PlainSink", "topics": topic, "file": str(out), **own}
    route = {"transforms": "r", "transforms.r.type": "RegexRouter"}
    route |= {"transforms.r.regex": "a", "transforms.r.replacement": "b"}
    refused = worker.rest.call("POST", "/connectors", {"name": "plain", "config": {**config, **route}})
    assert (refused.status, "takes records as bytes" in refused.body["message"]) == (400, True)
    create(worker, "plain", config)
    assert eventually(lambda: out.exists() and len(out.read_text().splitlines()) == 3, FLOW_TIMEOUT_S), (
        worker.log_tail()
    )
    shown = [(each["key"], each["value"], each.get("headers", [])) for each in records]
    assert [ast.literal_eval(line) for line in out.read_text().splitlines()] == shown


def test_what_was_staged_is_seen_once_though_the_coordinator_dies_while_it_is_applied(
    worker: Standalone, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic()
    config = staging(tmp_path, topics=topic, **{"wherry.delivery": "exactly-once"})
    create(worker, "stager", config)
    fill(bootstrap, topic, [b"%d" % number for number in range(100)])
    assert eventually(lambda: len(done(tmp_path)) == 100, FLOW_TIMEOUT_S), worker.log_tail()
    # Applied, and then it dies before the group knows: read again from there, each row would be seen twice.
    (tmp_path / "hang-after").touch()
    fill(bootstrap, topic, [b"%d" % number for number in range(100, 200)])
    assert eventually((tmp_path / "hanging-after").exists, FLOW_TIMEOUT_S), worker.log_tail()
    worker.kill()
    assert group_offsets(bootstrap, "connect-stager", topic)[topic, 0] < len(done(tmp_path))
    fill(bootstrap, topic, [b"%d" % number for number in range(200, 300)])
    worker.start()
    create(worker, "stager", config)
    assert eventually(lambda: group_offsets(bootstrap, "connect-stager", topic)[topic, 0] == 300, FLOW_TIMEOUT_S)
    assert done(tmp_path) == sorted(f"0:{number}" for number in range(300))
    assert "had staged rows that may not have been applied" in worker.log_path.read_text()


def test_a_direct_pipeline_into_a_sink_that_stages_shows_each_row_once_though_the_coordinator_dies(
    worker: Standalone, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    own = staging(tmp_path)
    config = {
        "connector.class": "FileStreamSource", "tasks.max": "1", "topic": "t", "file": str(source),
        "sink.connector.class": own["connector.class"], "sink.folder": own["folder"],
        "wherry.delivery": "exactly-once",
    }  # fmt: skip

    def write(start: int) -> None:
        with source.open("a") as file:
            file.writelines(f"{number}\n" for number in range(start, start + 100))

    write(0)
    create(worker, "straight", config)
    assert eventually(lambda: len(done(tmp_path)) == 100, FLOW_TIMEOUT_S), worker.log_tail()
    # Applied, and then it dies before the position is kept: read again from there, each row would be seen twice.
    (tmp_path / "hang-after").touch()
    write(100)
    assert eventually((tmp_path / "hanging-after").exists, FLOW_TIMEOUT_S), worker.log_tail()
    # What is staged is no position of the source.
    [(partition, _)] = worker.rest.offsets("straight")
    assert partition == {"filename": str(source)}
    worker.kill()
    write(200)
    worker.start()
    create(worker, "straight", config)
    assert eventually(lambda: len(done(tmp_path)) >= 300, FLOW_TIMEOUT_S), worker.log_tail()
    assert done(tmp_path) == sorted(f"None:{number}" for number in range(300))
    length = source.stat().st_size
    assert eventually(
        lambda: [offset for _, offset in worker.rest.offsets("straight")] == [{"position": length}], FLOW_TIMEOUT_S
    )
