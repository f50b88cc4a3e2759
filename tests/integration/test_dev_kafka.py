"""The embedded broker: real, restartable on its data, and gone with whoever started it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.topics import commit, consume, create_topic, end_offsets, group_offsets, produce, values
from tests.support.waiting import eventually, is_alive

from wherry.coordinator.dev.errors import PortTakenError, ServerStartError
from wherry.coordinator.dev.kafka import EmbeddedKafka

COMMAND = [sys.executable, "-m", "wherry.coordinator.cli", "dev", "kafka"]
RECORDS = [b"record %d" % number for number in range(1000)]


def test_what_is_produced_is_consumed_in_order(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, RECORDS)
    assert values(consume(bootstrap, topic, len(RECORDS))) == RECORDS


def test_a_topic_made_by_a_first_write_has_one_partition(bootstrap: str) -> None:
    produce(bootstrap, "made-by-writing", [b"a"])
    assert end_offsets(bootstrap, "made-by-writing") == {0: 1}


def test_transactions_commit_with_a_single_node(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(60)
    for kept in (False, True):
        producer.begin_transaction()
        producer.produce(topic, b"kept" if kept else b"undone")
        if kept:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    assert values(consume(bootstrap, topic, 1)) == [b"kept"]


def test_a_group_keeps_the_offsets_it_committed(bootstrap: str, topic: str) -> None:
    from confluent_kafka import TopicPartition

    commit(bootstrap, f"group-{topic}", [TopicPartition(topic, 0, 42)])
    assert group_offsets(bootstrap, f"group-{topic}", topic) == {(topic, 0): 42}


def test_a_killed_broker_starts_again_with_its_data(own_kafka: EmbeddedKafka) -> None:
    create_topic(own_kafka.bootstrap, "kept")
    produce(own_kafka.bootstrap, "kept", RECORDS)
    own_kafka.kill()
    assert not own_kafka.is_running
    own_kafka.start()
    produce(own_kafka.bootstrap, "kept", [b"after"])
    assert values(consume(own_kafka.bootstrap, "kept", len(RECORDS) + 1)) == [*RECORDS, b"after"]


def test_data_of_a_stopped_broker_serve_another_one_on_other_ports(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path) as first:
        produce(first.bootstrap, "kept", [b"a"])
    with EmbeddedKafka(data_dir=tmp_path) as second:
        assert second.port != first.port
        assert values(consume(second.bootstrap, "kept", 1)) == [b"a"]


def test_temporary_data_go_with_the_broker() -> None:
    with EmbeddedKafka() as broker:
        assert broker.data_dir.is_dir()
    assert not broker.data_dir.exists()


@pytest.mark.parametrize("step", ["", ".start()"], ids=["described", "started"])
def test_a_broker_that_nobody_closes_leaves_nothing(step: str) -> None:
    script = f"""
from wherry.coordinator.dev.kafka import EmbeddedKafka
broker = EmbeddedKafka(){step}
print(broker.data_dir)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=True)
    assert eventually(lambda: not Path(done.stdout.strip()).exists(), 60)


def test_a_taken_port_is_told_before_anything_starts(free_port: int, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", free_port)),
        pytest.raises(PortTakenError, match=f"Port {free_port} for the Kafka broker is already in use"),
    ):
        EmbeddedKafka(port=free_port, data_dir=tmp_path).start()
    assert not list(tmp_path.iterdir())


def test_a_broker_that_cannot_start_shows_its_last_words(tmp_path: Path) -> None:
    broker = EmbeddedKafka(data_dir=tmp_path, options={"num.io.threads": "none"})
    with pytest.raises(ServerStartError, match=r"Invalid value none for configuration num\.io\.threads"):
        broker.start()
    assert not broker.is_running


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_the_command_tells_when_the_broker_is_ready_and_ends_cleanly(
    stop: signal.Signals, free_port: int, tmp_path: Path
) -> None:
    command = [*COMMAND, "--port", str(free_port), "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert f"ready at 127.0.0.1:{free_port}" in running.stdout.readline()
        produce(f"127.0.0.1:{free_port}", "t", [b"a"])
        running.send_signal(stop)
        assert running.wait(60) == 0
    assert (tmp_path / "data" / "broker.log").is_file()


def test_a_second_broker_on_the_port_is_refused_in_one_sentence(kafka: EmbeddedKafka) -> None:
    refused = subprocess.run(
        [*COMMAND, "--port", str(kafka.port)], capture_output=True, text=True, timeout=180, check=False
    )
    assert refused.returncode == 3
    assert refused.stderr.splitlines()[0] == (
        f"Error: Port {kafka.port} for the Kafka broker is already in use on 127.0.0.1."
    )


@pytest.mark.parametrize("victim", ["owner", "keeper"])
def test_no_broker_and_no_data_outlive_a_killed_parent(victim: str, free_port: int) -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", str(free_port), "-o", "json"], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        ready = json.loads(owner.stdout.readline())
        assert is_alive(ready["pid"])
        os.kill(owner.pid if victim == "owner" else _parent_of(ready["pid"]), signal.SIGKILL)
        assert eventually(lambda: not is_alive(ready["pid"]), 60)
    assert eventually(lambda: not Path(ready["data"]).exists(), 60)


def test_a_broker_outlives_the_thread_that_started_it(own_kafka: EmbeddedKafka) -> None:
    own_kafka.stop()
    _in_a_thread(own_kafka.start)
    produce(own_kafka.bootstrap, "t", [b"a"])
    assert own_kafka.is_running


def _in_a_thread(work: Callable[[], object]) -> None:
    import threading

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
