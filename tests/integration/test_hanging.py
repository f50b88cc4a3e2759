"""Connectors that hang in one call or another, all at once: REST and the others go on as if they were not there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.standalone import REPOSITORY, Standalone
from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

FLOW_TIMEOUT_S = 120.0
VALIDATE_TIMEOUT_S = 3.0
ANSWER_S_MAX = 3.0
"""Of any call that asks no plugin. Far more than it takes, far less than any deadline it could be waiting for."""
DELETE_S_MAX = 15.0
"""A connector is deleted once only, so it may be kept waiting; one that was asked goes on hanging for much longer."""
STATUS_S_MAX = 15.0
"""Of all status calls that were slow, together."""
STOP_S_MAX = 30.0
ROUNDS = 3
"""An act that is slow each time waits for somebody; one that is slow once was kept waiting by the machine."""
SOURCE, SINK = "wherry.hostile.HostileSource", "wherry.hostile.HostileSink"
HANGING = {
    "source-configure": {"connector.class": SOURCE, "misbehave": "hang-configure"},
    "source-plan": {"connector.class": SOURCE, "misbehave": "hang-plan"},
    "source-frozen": {"connector.class": SOURCE, "misbehave": "freeze-plan"},
    "source-read": {"connector.class": SOURCE, "misbehave": "hang-read"},
    "source-stop": {"connector.class": SOURCE, "misbehave": "hang-stop,hang-delete,ignore-sigterm"},
    "sink-ensure": {"connector.class": SINK, "misbehave": "hang-ensure"},
    "sink-write": {"connector.class": SINK, "misbehave": "hang-write"},
    "sink-flush": {"connector.class": SINK, "misbehave": "hang-flush"},
}
ACTS = (("PUT", "pause"), ("PUT", "resume"), ("POST", "restart?includeTasks=true"), ("PUT", "stop"), ("PUT", "resume"))


class Pulse:
    """Asks REST for everything without a break, and remembers how long each answer took."""

    def __init__(self, worker: Standalone) -> None:
        self.took_s: list[float] = []
        self._worker = worker
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(FLOW_TIMEOUT_S)

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            self.took_s.append(timed(self._worker, "GET", "/connectors?expand=status&expand=info")[0])


def timed(worker: Standalone, method: str, path: str, body: Any = None) -> tuple[float, int]:
    began = time.monotonic()
    status = worker.rest.call(method, path, body, timeout_s=FLOW_TIMEOUT_S).status
    return time.monotonic() - began, status


def slow_acts(worker: Standalone, name: str) -> list[str]:
    """Do everything to a connector; what took long."""
    slow = []
    for method, act in ACTS:
        took_s, status = timed(worker, method, f"/connectors/{name}/{act}")
        assert status in (202, 204), f"{method} {name}/{act} answered {status}"
        if took_s >= ANSWER_S_MAX:
            slow.append(f"{method} {name}/{act} took {took_s:.1f} s")
    return slow


@pytest.fixture
def worker(kafka: EmbeddedKafka) -> Iterator[Standalone]:
    settings = {
        "plugin.path": str(REPOSITORY / "sidecars"),
        "wherry.validate.timeout.ms": str(int(VALIDATE_TIMEOUT_S * 1000)),
        "task.shutdown.graceful.timeout.ms": "5000",
    }
    with Standalone(bootstrap=kafka.bootstrap, settings=settings) as started:
        yield started


def test_whoever_hangs_in_whatever_call_delays_nobody_else(
    kafka: EmbeddedKafka, worker: Standalone, tmp_path: Path
) -> None:
    create_topic(kafka.bootstrap, "hanging")
    produce(kafka.bootstrap, "hanging", [b"row"] * 10)
    given, taken = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("one\n")
    with Pulse(worker) as pulse, ThreadPoolExecutor(len(HANGING) + 1) as pool:

        def create(name: str) -> tuple[float, int]:
            shape = {"topic": "hanging-out"} if "source" in name else {"topics": "hanging"}
            return timed(worker, "POST", "/connectors", {"name": name, "config": {**HANGING[name], **shape}})

        stuck = pool.submit(
            timed, worker, "PUT", "/connectors/never/config",
            {"connector.class": SOURCE, "topic": "t", "misbehave": "hang-validate"},
        )  # fmt: skip
        created = dict(zip(HANGING, pool.map(create, HANGING), strict=True))
        assert {status for _, status in created.values()} == {201}, created
        took_s, status = stuck.result()
        assert (status, took_s < VALIDATE_TIMEOUT_S + FLOW_TIMEOUT_S / 2) == (500, True), (status, took_s)

        # Others start and move records while all of those hang.
        worker.rest.create("good-in", {"connector.class": "FileStreamSource", "file": str(given), "topic": "good"})
        worker.rest.create("good-out", {"connector.class": "FileStreamSink", "file": str(taken), "topics": "good"})
        assert eventually(lambda: taken.exists() and taken.read_text() == "one\n", FLOW_TIMEOUT_S), worker.log_tail()

        for _ in range(ROUNDS):
            slow = [told for name in HANGING for told in slow_acts(worker, name)]
            if not slow:
                break
        assert not slow
        for name in HANGING:
            took_s, status = timed(worker, "DELETE", f"/connectors/{name}")
            assert (status, took_s < DELETE_S_MAX) == (204, True), (name, status, took_s)

        with given.open("a") as file:
            file.write("two\n")
        assert eventually(lambda: taken.read_text() == "one\ntwo\n", FLOW_TIMEOUT_S), worker.log_tail()
    assert len(pulse.took_s) > 10
    slow_s = [took_s for took_s in pulse.took_s if took_s >= ANSWER_S_MAX]
    assert sum(slow_s) < STATUS_S_MAX, f"a status waited for one that hangs: {slow_s}"
    code, took_s = worker.stop()
    assert (code, took_s < STOP_S_MAX) == (0, True), (code, took_s)
    assert eventually(lambda: not worker.processes("sidecar"), FLOW_TIMEOUT_S), worker.processes("sidecar")
