"""The sidecar host as a process, with real sidecars that behave and misbehave."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from wherry.contract import rpc
from wherry.contract.errors import (
    AuthError,
    ConfigError,
    ConnectorBugError,
    FencedError,
    TransientError,
    WherryError,
)
from wherry.control.v1 import host_pb2, host_pb2_grpc, lease_pb2
from wherry.worker.host.entry import LINGER_S
from wherry.worker.host.logs import LINES_BURST, LINES_PER_S

pytestmark = pytest.mark.integration

MOODY = Path(__file__).with_name("plugins") / "moody"


class HostUnderTest:
    """A host process and a client of it."""

    def __init__(self, directory: Path, parent_pid: int, *options: str) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self.directory = directory
        self.socket = directory / "host.sock"
        command = [sys.executable, "-m", "wherry.worker.host", "--socket", str(self.socket)]
        environment = {**os.environ, "ENGINE_SECRET": "hush", "OTEL_SERVICE_NAME": "test"}
        command += ["--parent-pid", str(parent_pid), *options]
        self.process = subprocess.Popen(command, env=environment)
        wait_until(lambda: listens(self.socket))
        self.channel = rpc.channel(f"unix://{self.socket}")
        self.stub = host_pb2_grpc.HostServiceStub(self.channel)
        self.events: list[Any] = []
        watch = self.stub.WatchSidecars(host_pb2.WatchSidecarsRequest())
        watch.initial_metadata()
        threading.Thread(target=self._follow, args=(watch,), daemon=True).start()

    def _follow(self, watch: Any) -> None:
        try:
            for event in watch:
                self.events.append(event)
        except (grpc.RpcError, ValueError):
            return

    def acquire(
        self,
        connector: str = "c",
        plugin: Path = MOODY,
        *,
        generation: int = 1,
        holder: str = "test",
        holder_pid: int = 0,
        timeout_ms: int = 60_000,
        alias: str = "",
        **config: str,
    ) -> Any:
        spec = lease_pb2.SidecarSpec(
            plugin=plugin.name,
            plugin_directory=str(plugin),
            class_name="wherry.test.MoodySource",
            connector=connector,
            generation=generation,
            config=config,
            alias=alias,
        )
        request = host_pb2.AcquireSidecarRequest(
            sidecar=spec, holder=holder, holder_pid=holder_pid, timeout_ms=timeout_ms
        )
        return self.call("AcquireSidecar", request)

    def release(self, acquired: Any, holder: str = "test") -> None:
        self.call("ReleaseSidecar", host_pb2.ReleaseSidecarRequest(instance_id=acquired.instance_id, holder=holder))

    def call(self, name: str, request: Any) -> Any:
        try:
            return getattr(self.stub, name)(request, timeout=90)
        except grpc.RpcError as error:
            raise rpc.from_rpc_error(error) from None

    def sidecars(self) -> list[Any]:
        return list(self.call("ListSidecars", host_pb2.ListSidecarsRequest()).sidecars)

    def lines(self, connector: str) -> list[str]:
        return [event.log_line for event in self.events if event.connector == connector and event.log_line]

    def exit_of(self, pid: int) -> Any:
        wait_until(lambda: any(event.pid == pid and event.HasField("exit") for event in self.events))
        return next(event.exit for event in self.events if event.pid == pid and event.HasField("exit"))

    def end(self) -> None:
        self.channel.close()
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(60)


@pytest.fixture
def run_directory() -> Iterator[Path]:
    # Sockets' paths are short; pytest's own folders are not.
    directory = Path("/tmp") / f"wherry-host-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def host(run_directory: Path) -> Iterator[HostUnderTest]:
    under_test = HostUnderTest(run_directory, os.getpid())
    yield under_test
    under_test.end()


def moody_at_start(directory: Path, mood: str) -> Path:
    plugin = directory / "moody"
    shutil.copytree(MOODY, plugin, ignore=shutil.ignore_patterns("__pycache__"))
    (plugin / "mood").write_text(mood)
    return plugin


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.01)


def listens(path: Path) -> bool:
    """Tell whether somebody listens at a socket, which is there a little before."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_sidecar_is_started_once_for_all_its_users(host: HostUnderTest) -> None:
    first, second = host.acquire(holder="one"), host.acquire(holder="two")
    assert first == second
    assert [list(sidecar.holders) for sidecar in host.sidecars()] == [["one", "two"]]


def test_each_link_of_a_chain_has_a_sidecar_of_its_own(host: HostUnderTest) -> None:
    first, second = host.acquire(alias="a"), host.acquire(alias="b")
    assert first.pid != second.pid
    assert host.acquire(alias="a") == first


def test_a_sidecar_gets_a_clean_environment(host: HostUnderTest) -> None:
    environment = Path(f"/proc/{host.acquire().pid}/environ").read_text()
    names = {entry.partition("=")[0] for entry in environment.split("\0")}
    assert {"WHERRY_ENDPOINT", "WHERRY_INSTANCE_ID", "PATH", "OTEL_SERVICE_NAME"} <= names
    assert "ENGINE_SECRET" not in names
    assert "PYTEST_CURRENT_TEST" not in names


def test_a_sidecar_has_its_own_session_and_limits(host: HostUnderTest) -> None:
    pid = host.acquire().pid
    assert os.getsid(pid) == pid
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")) == "256"


def test_its_output_arrives_with_the_connectors_name(host: HostUnderTest) -> None:
    host.acquire("lines")
    wait_until(lambda: "configured lines 1 []" in host.lines("lines"))


def test_a_killed_sidecar_is_there_again_at_the_next_call(host: HostUnderTest) -> None:
    before = host.acquire()
    os.kill(before.pid, signal.SIGKILL)
    after = host.acquire()
    assert after.pid != before.pid
    assert host.exit_of(before.pid).message.startswith("was killed by SIGKILL")
    assert [sidecar.restarts for sidecar in host.sidecars()] == [1]


def test_a_sidecar_that_no_longer_answers_is_replaced_for_who_comes_again(host: HostUnderTest) -> None:
    before = host.acquire()
    os.kill(before.pid, signal.SIGSTOP)
    after = host.acquire()
    assert after.pid != before.pid
    assert "it no longer answered" in host.exit_of(before.pid).message


def test_a_released_sidecar_is_stopped_in_good_order(host: HostUnderTest) -> None:
    acquired = host.acquire()
    host.release(acquired)
    assert host.exit_of(acquired.pid).expected
    assert "asked to stop" in host.lines("c")
    assert host.sidecars() == []


def test_a_sidecar_whose_user_was_killed_is_stopped(host: HostUnderTest) -> None:
    user = subprocess.Popen(["sleep", "100"])
    acquired = host.acquire(holder_pid=user.pid)
    user.kill()
    user.wait()
    assert host.exit_of(acquired.pid).expected


def test_a_sidecar_used_again_in_time_is_kept(host: HostUnderTest) -> None:
    took_s = LINGER_S
    while took_s >= LINGER_S:  # which is not in time
        acquired = host.acquire(holder="plan")
        begun = time.monotonic()
        host.release(acquired, "plan")
        again = host.acquire(holder="lease")
        took_s = time.monotonic() - begun
    assert again.pid == acquired.pid
    time.sleep(LINGER_S + 1)
    assert is_alive(acquired.pid)


def test_an_older_generation_is_fenced(host: HostUnderTest) -> None:
    host.acquire(generation=2)
    with pytest.raises(FencedError, match="generation 1 of connector c is over; generation 2 has taken over"):
        host.acquire(generation=1)


def test_stop_ends_older_generations_only(host: HostUnderTest) -> None:
    old, new = host.acquire(generation=1), host.acquire(generation=2)
    stopped = host.call("StopConnector", host_pb2.StopConnectorRequest(connector="c", below_generation=2))
    assert stopped.stopped == 1
    assert not is_alive(old.pid)
    assert is_alive(new.pid)


def test_a_plugin_can_be_asked_without_being_configured(host: HostUnderTest) -> None:
    request = host_pb2.AcquirePluginRequest(plugin="moody", plugin_directory=str(MOODY), holder="describe")
    acquired = host.call("AcquirePlugin", request)
    assert acquired.endpoint.startswith("unix:///")
    assert not [line for line in host.lines("moody") if "configured" in line]


def test_a_refused_configuration_is_told_as_the_sidecar_said_it(host: HostUnderTest) -> None:
    with pytest.raises(ConfigError, match=r"^topic must be given$"):
        host.acquire(mood="refuse")


def test_a_sidecar_that_dies_when_configured_is_told_with_its_last_words(host: HostUnderTest) -> None:
    with pytest.raises(ConnectorBugError, match=r"(?s)ended with code 7; its last lines were:.*I have had enough"):
        host.acquire(mood="die")


def test_a_sidecar_that_dies_at_once_is_told_with_its_last_words(host: HostUnderTest, tmp_path: Path) -> None:
    with pytest.raises(ConnectorBugError, match=r"(?s)moody of connector c ended with code 1.*cannot find my hat"):
        host.acquire(plugin=moody_at_start(tmp_path, "crash"))


def test_a_crash_loop_is_given_up(host: HostUnderTest, tmp_path: Path) -> None:
    plugin = moody_at_start(tmp_path, "crash")
    for _ in range(6):
        with pytest.raises(ConnectorBugError, match="cannot find my hat"):
            host.acquire(plugin=plugin)
    with pytest.raises(ConnectorBugError, match=r"failed 6 times within 60 s and is not started again"):
        host.acquire(plugin=plugin)


def test_a_sidecar_that_never_listens_is_given_up_in_time(host: HostUnderTest, tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="did not begin to listen in time"):
        host.acquire(plugin=moody_at_start(tmp_path, "mute"), timeout_ms=1000)
    assert host.sidecars() == []


def test_a_sidecar_that_is_never_healthy_is_given_up_in_time(host: HostUnderTest, tmp_path: Path) -> None:
    plugin = moody_at_start(tmp_path, "sick")
    for timeout_ms in (1_000, 5_000, 60_000):  # the first in which it has begun to listen on this machine
        with pytest.raises(TransientError, match="in time") as told:
            host.acquire(plugin=plugin, timeout_ms=timeout_ms)
        if "to listen" not in str(told.value):
            break
    assert re.search(r"(?s)was not healthy in time: it said NOT_SERVING.*serving unix:", str(told.value))


def test_a_sidecar_that_is_somebody_else_is_refused(host: HostUnderTest, tmp_path: Path) -> None:
    with pytest.raises(ConnectorBugError, match="answered Hello with instance id 'another'"):
        host.acquire(plugin=moody_at_start(tmp_path, "wrong-instance"))


def test_a_hanging_sidecar_keeps_nobody_else_waiting(host: HostUnderTest) -> None:
    # A machine may be too slow for all that to happen before the first of them is given up.
    assert any(acquired_while_others_hang(host, timeout_ms) for timeout_ms in (4_000, 20_000, 50_000))


def acquired_while_others_hang(host: HostUnderTest, timeout_ms: int) -> bool:
    """Tell whether a sidecar could be had while four others hung, all of which are given up."""
    failures: list[WherryError] = []
    names = [f"hang-{timeout_ms}-{number}" for number in range(4)]

    def hang(name: str) -> None:
        try:
            host.acquire(name, mood="hang", timeout_ms=timeout_ms)
        except WherryError as error:
            failures.append(error)

    hanging = [threading.Thread(target=hang, args=(name,)) for name in names]
    for thread in hanging:
        thread.start()
    wait_until(lambda: bool(failures) or all(any("configured" in line for line in host.lines(name)) for name in names))
    host.acquire(f"well-{timeout_ms}")
    in_time = not failures
    for thread in hanging:
        thread.join()
    assert [type(error) for error in failures] == [TransientError] * 4
    return in_time


def test_a_leaking_sidecar_is_killed_with_a_reason(host: HostUnderTest) -> None:
    pid = host.acquire(mood="leak").pid
    outcome = host.exit_of(pid)
    assert "was killed by SIGKILL; it was using" in outcome.message
    assert "of its 200 MiB" in outcome.message
    assert not outcome.expected


def test_a_flooding_sidecar_neither_fills_memory_nor_is_blocked(host: HostUnderTest) -> None:
    host.acquire(mood="flood")
    wait_until(lambda: len(host.lines("c")) > 1500)
    begun, before = time.monotonic(), len(host.lines("c"))
    time.sleep(1)
    more = len(host.lines("c")) - before
    assert more < LINES_BURST + LINES_PER_S * (time.monotonic() - begun + 3)
    assert host.acquire("well")


def test_what_a_sidecar_started_dies_with_it(host: HostUnderTest) -> None:
    acquired = host.acquire(mood="child")
    wait_until(lambda: any(line.startswith("child ") for line in host.lines("c")))
    child = int(next(line for line in host.lines("c") if line.startswith("child ")).split()[1])
    os.kill(acquired.pid, signal.SIGKILL)
    host.exit_of(acquired.pid)
    wait_until(lambda: not is_alive(child))


def test_a_stubborn_sidecar_is_killed_in_the_end(host: HostUnderTest) -> None:
    acquired = host.acquire(mood="stubborn")
    host.call("StopConnector", host_pb2.StopConnectorRequest(connector="c", deadline_ms=2000))
    assert "did not end within" in host.exit_of(acquired.pid).message


def test_a_host_told_to_end_leaves_nothing(host: HostUnderTest) -> None:
    pids = [host.acquire(f"c{number}").pid for number in range(3)]
    host.process.terminate()
    assert host.process.wait(60) == 0
    assert not [pid for pid in pids if is_alive(pid)]
    assert list(host.directory.iterdir()) == []


def test_a_killed_host_leaves_nothing(host: HostUnderTest) -> None:
    acquired = host.acquire(mood="child")
    wait_until(lambda: any(line.startswith("child ") for line in host.lines("c")))
    child = int(next(line for line in host.lines("c") if line.startswith("child ")).split()[1])
    host.process.kill()
    host.process.wait()
    wait_until(lambda: not is_alive(acquired.pid) and not is_alive(child))
    wait_until(lambda: list(host.directory.iterdir()) == [])


def test_a_host_ends_with_its_parent(run_directory: Path) -> None:
    parent = subprocess.Popen(["sleep", "100"])
    host = HostUnderTest(run_directory, parent.pid)
    acquired = host.acquire()
    parent.kill()
    parent.wait()
    assert host.process.wait(60) == 0
    assert not is_alive(acquired.pid)
    assert list(run_directory.iterdir()) == []


def test_a_host_removes_the_folder_of_a_killed_parent(run_directory: Path) -> None:
    parent = subprocess.Popen(["sleep", "100"])
    host = HostUnderTest(run_directory, parent.pid, "--remove", str(run_directory))
    (run_directory / "spark").mkdir()
    (run_directory / "spark" / "log4j2.properties").touch()
    parent.kill()
    parent.wait()
    assert host.process.wait(60) == 0
    assert not run_directory.exists()


def test_a_host_told_to_end_leaves_the_folder_to_its_parent(run_directory: Path) -> None:
    host = HostUnderTest(run_directory, os.getpid(), "--remove", str(run_directory))
    host.end()
    assert run_directory.exists()


def test_a_second_host_at_the_same_place_is_refused(host: HostUnderTest) -> None:
    command = [sys.executable, "-m", "wherry.worker.host", "--socket", str(host.socket)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert second.returncode == 2
    assert f"process {host.process.pid} listens at {host.socket} already" in second.stderr
    assert host.acquire()


def test_a_folder_that_others_may_enter_is_refused(run_directory: Path) -> None:
    run_directory.mkdir(mode=0o755)
    run_directory.chmod(0o755)
    command = [sys.executable, "-m", "wherry.worker.host", "--socket", str(run_directory / "host.sock")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert refused.returncode == 2
    assert "with mode 755, and 700 is wanted" in refused.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"run": ["bin/nothing"]}, "moody cannot be started: .*bin/nothing does not exist"),
        ({"run": ["no-such-program"]}, "there is no program 'no-such-program' on the PATH"),
        ({"environment": {"python": "<3"}}, "needs Python <3, and Wherry runs on"),
        ({"name": "bad name"}, "name may have letters"),
    ],
)
def test_a_broken_plugin_is_told_in_a_sentence(
    host: HostUnderTest, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    plugin = moody_at_start(tmp_path, "")
    manifest = {
        "name": "moody",
        "version": "1",
        "classes": [{"class": "M", "role": "source"}],
        "run": ["python", "-m", "moody"],
        "environment": {"none": True},
    }
    (plugin / "sidecar.yaml").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(ConfigError, match=sentence) as told:
        host.acquire(plugin=plugin)
    assert "Traceback" not in str(told.value)


def test_a_missing_plugin_is_told_in_a_sentence(host: HostUnderTest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no sidecar.yaml"):
        host.acquire(plugin=tmp_path)


@pytest.fixture
def attached(tmp_path: Path, run_directory: Path) -> Iterator[tuple[Path, Callable[[], subprocess.Popen[bytes]]]]:
    plugin, place = tmp_path / "attached", run_directory.with_suffix(".side.sock")
    plugin.mkdir()
    manifest = {"name": "moody", "version": "1", "classes": [{"class": "M", "role": "source"}], "attach": str(place)}
    (plugin / "sidecar.yaml").write_text(json.dumps(manifest))
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        environment = {**os.environ, "WHERRY_ENDPOINT": f"unix://{place}", "WHERRY_INSTANCE_ID": "by hand"}
        place.unlink(missing_ok=True)
        running.append(subprocess.Popen([sys.executable, "-m", "moody"], cwd=MOODY, env=environment))
        wait_until(lambda: listens(place))
        return running[-1]

    yield plugin, start
    for process in running:
        process.kill()
        process.wait()
    place.unlink(missing_ok=True)


def test_an_attached_sidecar_is_used_and_not_stopped(host: HostUnderTest, attached: Any) -> None:
    plugin, start = attached
    process = start()
    acquired = host.acquire(plugin=plugin)
    assert acquired.pid == 0
    host.call("StopConnector", host_pb2.StopConnectorRequest(connector="c"))
    assert process.poll() is None


def test_an_attached_sidecar_that_is_not_there_is_told(host: HostUnderTest, attached: Any) -> None:
    with pytest.raises(TransientError, match="nobody listens there; start it first"):
        host.acquire(plugin=attached[0])


def test_an_attached_sidecar_started_anew_is_configured_again(host: HostUnderTest, attached: Any) -> None:
    plugin, start = attached
    process = start()
    host.acquire(plugin=plugin)
    process.kill()
    process.wait()
    wait_until(lambda: host.sidecars() == [])
    start()
    assert host.acquire(plugin=plugin).endpoint


def test_an_attached_sidecar_of_another_user_is_refused(host: HostUnderTest, attached: Any) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to start a process of another user")
    plugin, _ = attached
    place = Path(json.loads((plugin / "sidecar.yaml").read_text())["attach"])
    code = f"""
import os, socket, time
os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind({str(place)!r})
listener.listen()
time.sleep(99)
"""
    stranger = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_until(lambda: listens(place))
        with pytest.raises(AuthError, match="is run by user 65534, and only user 0 or root may serve here"):
            host.acquire(plugin=plugin)
    finally:
        stranger.kill()
        stranger.wait()
