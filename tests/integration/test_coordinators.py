"""Several coordinators of one group: one leads, the others answer and forward, and take over when it ends or dies."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.distributed import Distributed, cluster_settings
from tests.support.rest import NoAnswerError, Rest, settled
from tests.support.topics import end_offsets
from tests.support.waiting import eventually

from wherry.coordinator.dev.connect import RealConnect

pytestmark = pytest.mark.integration
START_TIMEOUT_S = 120.0
FLOW_TIMEOUT_S = 120.0
SEND_S = 0.02
READ_ALIKE = (
    *("/", "/connectors?expand=status&expand=info", "/connector-plugins?connectorsOnly=false"),
    *(f"/connectors/{name}{path}" for name in ("src", "snk") for path in ("", "/config", "/status", "/tasks")),
    *(f"/connectors/{name}/{path}" for name in ("src", "snk") for path in ("offsets", "topics", "tasks/0/status")),
)
"""What leader and standby answer in the same words."""
CHANGES = {
    ("PUT", "/connectors/snk/config"): 200,
    ("POST", "/connectors"): 409,  # it exists already
    ("DELETE", "/connectors/none"): 404,
    ("POST", "/connectors/snk/restart"): 204,
    ("PUT", "/connectors/src/resume"): 202,
}
"""What is asked of a standby while nobody leads, and what it answers then as always."""
FROZEN_S = 15.0
"""Beyond the silence after which a lease ends."""
TAKE_OVER_S_MAX = 60.0  # the target is 10 s on a machine of its own; CI has others beside it


class Pair:
    """Coordinators of one group, the first of which leads at the beginning, and a flow through both connectors."""

    def __init__(self, bootstrap: str, folder: Path, topic: str, size: int = 2) -> None:
        self.group = f"pair-{uuid.uuid4().hex[:8]}"
        self.bootstrap = bootstrap
        self.lines = 0
        self.folder = folder
        self._in, self._out = folder / "in", folder / "out"
        self.configs = {
            "src": {"connector.class": "FileStreamSource", "file": str(self._in), "topic": topic},
            "snk": {"connector.class": "FileStreamSink", "file": str(self._out), "topics": topic},
        }
        self.members = [Distributed(bootstrap=bootstrap, group=self.group) for _ in range(size)]

    def start(self) -> None:
        for member in self.members:
            member.start()
            assert eventually(member.rest.is_healthy, START_TIMEOUT_S), member.log_tail()

    def close(self) -> None:
        for member in self.members:
            member.close()

    def send(self, count: int) -> None:
        with self._in.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(self.lines, self.lines + count))
        self.lines += count

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        """Send lines all the time."""
        stopped = threading.Event()

        def run() -> None:
            while not stopped.wait(SEND_S):
                self.send(1)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join(90)

    def sent_to_kafka(self) -> int:
        """How many records the topic holds, lines sent twice among them."""
        return sum(end_offsets(self.bootstrap, self.configs["src"]["topic"]).values())

    def positions(self) -> list[Any]:
        """How far the source and the sink have got, as committed."""
        rest, topic = self.members[-1].rest, self.configs["src"]["topic"]
        source, sink = (rest.get(f"/connectors/{name}/offsets")["offsets"] for name in ("src", "snk"))
        # The group of a sink outlives a test, with the topics of others.
        return [source, [each for each in sink if each["partition"]["kafka_topic"] == topic]]

    def received(self) -> list[str]:
        return self._out.read_text().splitlines() if self._out.exists() else []

    def wait(self) -> None:
        wanted = {f"line {number}" for number in range(self.lines)}
        arrived = eventually(lambda: wanted <= set(self.received()), FLOW_TIMEOUT_S)
        assert arrived, f"{len(wanted - set(self.received()))} lines are missing"

    def leader(self) -> Distributed:
        leading = [member for member in self.members if _last_role(member) == "leading"]
        assert len(leading) == 1, [_last_role(member) for member in self.members]
        return leading[0]


def _status(rest: Rest, pair: Pair, method: str, path: str) -> int:
    """How a change is answered; its body is the sink's configuration, or the sink."""
    body: Any = {"/connectors": {"name": "snk", "config": pair.configs["snk"]}}.get(path)
    return rest.call(method, path, pair.configs["snk"] if path.endswith("/config") else body).status


def _last_role(member: Distributed) -> str:
    told = [line for line in member.log_path.read_text().splitlines() if "this coordinator of group" in line]
    return told[-1].rpartition(" is ")[2].split()[0].strip('"}') if told else ""


class Reader:
    """Reads from one coordinator all the time, and counts what failed."""

    def __init__(self, rest: Rest, *paths: str) -> None:
        self._rest, self._paths = rest, paths
        self.answers, self.failures = 0, list[str]()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(90)

    def _run(self) -> None:
        while not self._stopped.wait(0.05):
            for path in self._paths:
                try:
                    answer = self._rest.call("GET", path, timeout_s=60)
                    failed = "" if answer.status == 200 else f"{path}: {answer.status} {answer.body}"
                except NoAnswerError as error:
                    failed = str(error)
                self.answers += 1
                if failed:
                    self.failures.append(failed)


@contextlib.contextmanager
def running(pair: Pair) -> Iterator[Pair]:
    """Start and end them; what goes wrong meanwhile is told with their logs."""
    try:
        pair.start()
        yield pair
    except BaseException as error:
        for member in pair.members:
            error.add_note(f"The end of the log of {member.rest.url}:\n{member.log_tail()}")
        raise
    finally:
        pair.close()


@pytest.fixture
def pair(bootstrap, tmp_path, topic) -> Iterator[Pair]:
    with running(Pair(bootstrap, tmp_path, topic)) as made:
        yield made


def test_a_standby_forwards_answers_reads_and_takes_over_when_the_leader_is_killed(pair):
    leader = pair.leader()
    standby = next(member for member in pair.members if member is not leader)
    assert leader is pair.members[0]

    for name, config in pair.configs.items():
        answer = standby.rest.call("POST", "/connectors", {"name": name, "config": config})
        assert (answer.status, answer.headers["Location"]) == (201, f"{standby.rest.url}/connectors/{name}")
    again = standby.rest.call("POST", "/connectors", {"name": "src", "config": pair.configs["src"]})
    assert (again.status, again.body["message"]) == (409, "Connector src already exists")
    assert standby.rest.call("DELETE", "/connectors/none").status == 404
    third_hop = standby.rest.call("PUT", "/connectors/src/pause?forward=false")
    assert (third_hop.status, "conflicting operation" in third_hop.body["message"]) == (409, True)
    for member in pair.members:
        member.rest.wait_for_states("src", "RUNNING", "RUNNING")
        member.rest.wait_for_states("snk", "RUNNING", "RUNNING")
    assert standby.rest.call("PUT", "/admin/loggers/wherry.sample?scope=cluster", {"level": "ERROR"}).status == 204
    for member in pair.members:
        level = "/admin/loggers/wherry.sample"
        assert eventually(lambda: member.rest.call("GET", level).body.get("level") == "ERROR", 60)  # noqa: B023
    pair.send(100)
    pair.wait()
    assert pair.received() == [f"line {number}" for number in range(100)]
    for path in READ_ALIKE:
        same = eventually(lambda: leader.rest.get(path) == standby.rest.get(path), 60)  # noqa: B023
        assert same, (path, leader.rest.get(path), standby.rest.get(path))

    paths = ("/connectors?expand=status&expand=info", "/connectors/src/offsets", "/connectors/snk/status", "/")
    with Reader(standby.rest, *paths) as reader, ThreadPoolExecutor(len(CHANGES)) as changers:
        leader.kill()
        began = time.monotonic()
        # They wait for the next leader, which is the one that is asked.
        changed = list(changers.map(lambda change: _status(standby.rest, pair, *change), CHANGES))
        pair.send(50)
        pair.wait()
        took_s = time.monotonic() - began
    assert changed == list(CHANGES.values())
    assert (reader.failures, reader.answers > 10) == ([], True)
    print(f"records moved again {took_s:.1f} s after the leader was killed")
    assert took_s < TAKE_OVER_S_MAX, standby.log_tail()
    standby.rest.wait_for_states("src", "RUNNING", "RUNNING")
    assert standby.rest.get("/connectors/src/status")["connector"]["worker_id"] in standby.rest.url

    # A rolling restart: the dead one comes back as standby, the leader goes in good order.
    leader.start()
    assert eventually(lambda: _last_role(leader) == "standby", START_TIMEOUT_S), leader.log_tail()
    before = len(pair.received())
    code, _ = standby.stop()
    assert code == 0
    pair.send(50)
    pair.wait()
    assert pair.leader() is leader
    assert len(pair.received()) == before + 50, "a clean hand-over repeats nothing"
    assert "Traceback" not in standby.log_path.read_text() + leader.log_path.read_text()


def test_a_leader_that_was_frozen_finds_itself_deposed(pair):
    leader = pair.leader()
    standby = next(member for member in pair.members if member is not leader)
    for name, config in pair.configs.items():
        leader.rest.create(name, config)
    pair.send(20)
    pair.wait()
    os.kill(leader.pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        assert eventually(lambda: _last_role(standby) == "leading", 120), standby.log_tail()
        pair.send(20)
        pair.wait()
        # Its leases hear nothing of it for as long, and end.
        time.sleep(max(FROZEN_S - (time.monotonic() - began), 0))
        assert eventually(lambda: _at(pair.positions(), pair), FLOW_TIMEOUT_S), pair.positions()
        lines, positions = pair.received(), pair.positions()
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    assert eventually(lambda: _last_role(leader) == "standby", 120), leader.log_tail()
    for _ in range(20):  # what it has heard of its leases before it knew
        assert (pair.received(), pair.positions()) == (lines, positions)
        time.sleep(0.1)
    assert settled(lambda: leader.rest.call("PUT", "/connectors/src/pause")).status == 202
    standby.rest.wait_for_states("src", "PAUSED", "PAUSED")
    leader.rest.wait_for_states("src", "PAUSED", "PAUSED")
    assert settled(lambda: leader.rest.call("PUT", "/connectors/src/resume")).status == 202
    pair.send(20)
    pair.wait()
    leases = [leader.rest.get("/wherry/v1/leases")["leases"], standby.rest.get("/wherry/v1/leases")["leases"]]
    assert leases[0] == []
    assert {lease["connector"] for lease in leases[1]} == {"src", "snk"}


def _at(positions: list[Any], pair: Pair) -> bool:
    """Whether all that was sent has been committed."""
    size = (pair.folder / "in").stat().st_size
    committed = [[each["offset"] for each in found] for found in positions]
    return committed == [[{"position": size}], [{"kafka_offset": pair.sent_to_kafka()}]]


def test_three_coordinators_are_restarted_one_by_one_with_no_line_lost_or_repeated(bootstrap, tmp_path, topic):
    with running(Pair(bootstrap, tmp_path, topic, size=3)) as three:
        for name, config in three.configs.items():
            three.members[-1].rest.create(name, config)
        three.send(10)
        three.wait()
        led = set()
        with three.sending():
            for member in three.members:
                led.add(three.leader().rest.url)
                code, _ = member.stop()
                assert code == 0, member.log_tail()
                others = [each for each in three.members if each is not member]
                took_over = eventually(lambda: any(_last_role(each) == "leading" for each in others), 120)  # noqa: B023
                assert took_over, [each.log_tail() for each in others]
                member.start()
                assert eventually(lambda: _last_role(member) == "standby", START_TIMEOUT_S), member.log_tail()  # noqa: B023
        three.wait()
        assert three.received() == [f"line {number}" for number in range(three.lines)]
        assert len(led) > 1
        assert "Traceback" not in "".join(member.log_path.read_text() for member in three.members)


def test_a_cluster_of_kafka_connect_that_runs_is_not_disturbed(bootstrap, tmp_path):
    group = f"both-{uuid.uuid4().hex[:8]}"
    options = {**cluster_settings(group), "plugin.discovery": "service_load"}
    with RealConnect(bootstrap=bootstrap, options=options) as connect:
        ours = Distributed(bootstrap=bootstrap, group=group)
        try:
            ours.start()
            ended = eventually(lambda: "is running: stop all its workers first" in ours.log_tail(), 120)
            assert ended, ours.log_tail()
            assert eventually(lambda: not ours.rest.answers(), 60)
        finally:
            ours.close()
        assert connect.is_healthy()
