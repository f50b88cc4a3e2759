"""A plugin as a process: how it starts, ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract.client import SidecarClient
from wherry.contract.plan import Work
from wherry.contract.wire import WireFrame

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
COUNTER = ROOT / "sdk" / "python" / "examples" / "counter.py"
WAIT_S = 60.0
# Of its own: what the libraries' files take is shared with whoever else has loaded them, and that differs.
ANONYMOUS_BYTES_MAX = 48 << 20

# A plugin's own environment has no numpy, which pyarrow loads wherever it finds it; the engine's has.
AS_IN_ITS_OWN_ENVIRONMENT = """
import runpy, sys
sys.modules["numpy"] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""

STUCK = """
import time
from wherry.sdk import Config, Source, serve
class Stuck(Source[Config]):
    class_name = "test.Stuck"
    def read(self, work, offsets):
        time.sleep(600)
        yield
serve(Stuck)
"""


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "sdk" / "python"), **more}


def wait_for(done: object) -> None:
    ends = time.monotonic() + WAIT_S
    while not done():  # type: ignore[operator]
        assert time.monotonic() < ends, "it took too long"
        time.sleep(0.02)


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "s.sock"


@pytest.fixture
def sidecar(socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", AS_IN_ITS_OWN_ENVIRONMENT, str(COUNTER)]
    process = subprocess.Popen(command, env=environment(WHERRY_ENDPOINT=f"unix://{socket}"))
    try:
        with SidecarClient(f"unix://{socket}") as client:
            wait_for(lambda: socket.exists() and client.healthy(deadline_s=1.0))
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S)


def test_sigterm_ends_it_well_and_takes_the_socket_away(sidecar: subprocess.Popen[bytes], socket: Path) -> None:
    with SidecarClient(f"unix://{socket}") as client:
        client.configure("c", "Counter", 1, {"topic": "t"})
        stream = client.read(generation=1, work=Work("0"))
        stream.receive(WAIT_S)
        sidecar.send_signal(signal.SIGTERM)
        assert sidecar.wait(WAIT_S) == 0
        kinds = [None if isinstance(message, WireFrame) else message.WhichOneof("message") for message in stream]
        assert kinds[-1] == "end", "the stream ends in good order"
    assert not socket.exists()


def test_its_socket_is_nobody_elses(sidecar: subprocess.Popen[bytes], socket: Path) -> None:
    assert stat.S_IMODE(socket.stat().st_mode) & 0o077 == 0


def test_it_stays_small(sidecar: subprocess.Popen[bytes], socket: Path) -> None:
    with SidecarClient(f"unix://{socket}") as client:
        client.configure("c", "Counter", 1, {"topic": "t", "count": "100000"})
        # Credit as an engine gives it: what lies in the stream beyond that would be the test's own doing.
        stream = client.read(generation=1, work=Work("0"))
        rows = 0
        for message in stream:
            if isinstance(message, WireFrame):
                rows += message.header.row_count
                stream.send(source_pb2.ReadRequest(credit=common_pb2.Credit(frames=1, bytes=message.body.size)))
            if rows == 100_000:
                break
    rollup = Path(f"/proc/{sidecar.pid}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Anonymous:"))
    assert own <= ANONYMOUS_BYTES_MAX


def test_a_generator_that_hangs_does_not_keep_the_process(socket: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", STUCK], env=environment(WHERRY_ENDPOINT=f"unix://{socket}"))
    try:
        with SidecarClient(f"unix://{socket}") as client:
            wait_for(lambda: socket.exists() and client.healthy(deadline_s=1.0))
            client.configure("c", "test.Stuck", 1, {})
            client.read(generation=1, work=Work("0")).receive(WAIT_S)
            started = time.monotonic()
            process.terminate()
            assert process.wait(WAIT_S) == 0
            assert time.monotonic() - started < 30.0
    finally:
        process.kill()
        process.wait(WAIT_S)


def test_it_ends_when_the_host_that_started_it_dies(socket: Path, tmp_path: Path) -> None:
    starter = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, {str(COUNTER)!r}])\n"
        "print(child.pid, flush=True); time.sleep(600)\n"
    )
    variables = environment(WHERRY_ENDPOINT=f"unix://{socket}", WHERRY_INSTANCE_ID="i-1")
    host = subprocess.Popen([sys.executable, "-c", starter], env=variables, stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    child = int(host.stdout.readline())
    with SidecarClient(f"unix://{socket}") as client:
        wait_for(lambda: socket.exists() and client.healthy(deadline_s=1.0))
        assert client.hello("i-1").instance_id == "i-1"
    host.kill()
    host.wait(WAIT_S)

    def gone() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    wait_for(gone)
    assert not socket.exists()


def test_without_an_endpoint_it_says_how_it_is_run() -> None:
    done = subprocess.run(
        [sys.executable, str(COUNTER)], env=environment(), capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 2
    assert "WHERRY_ENDPOINT=unix:///tmp/sidecar.sock" in done.stderr
    assert "wherry.example.CounterSource" in done.stderr
    assert "topic  string, required  Topic to write to." in done.stderr


def test_an_endpoint_that_cannot_be_listened_on_is_one_sentence(tmp_path: Path) -> None:
    variables = environment(WHERRY_ENDPOINT=f"unix://{tmp_path}/no/such/folder/s.sock")
    done = subprocess.run([sys.executable, str(COUNTER)], env=variables, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 1
    assert "can't be listened on" in done.stderr
    assert "Traceback" not in done.stderr
