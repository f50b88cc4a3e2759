"""Sidecars forked from a warm process of their plugin: as much apart as those that were started for themselves."""

from __future__ import annotations

import os
import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_host import HostUnderTest, is_alive, wait_until
from tests.integration.test_host import run_directory as run_directory
from tests.support.plugins import write_plugin

from wherry.contract.errors import ConnectorBugError

pytestmark = pytest.mark.integration

CODE = """\
import os, subprocess, sys, threading, time
from wherry.sdk import Sink, serve

print("loaded", flush=True)
{before}

class Quiet(Sink):
    class_name = "wherry.test.MoodySource"

    def __init__(self, *given):
        super().__init__(*given)
        print("left", subprocess.Popen(["sleep", "300"], start_new_session=True).pid)

    def write(self, batch):
        pass

if __name__ == "__main__":
    serve(Quiet, name="warm", version="1")
"""


@pytest.fixture
def host(run_directory: Path) -> Iterator[HostUnderTest]:
    under_test = HostUnderTest(run_directory, os.getpid())
    yield under_test
    under_test.end()


def plugin(folder: Path, before: str = "") -> Path:
    code = CODE.format(before=textwrap.dedent(before))
    return write_plugin(
        folder, "warm", code, class_name="wherry.test.MoodySource", role="sink", limits={"open_files": 300}
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def warm_process(host: HostUnderTest, *sidecars: Any) -> int:
    """The process of the plugin that is no sidecar."""
    of_host = Path(f"/proc/{host.process.pid}/task").glob("*/children")
    pids = {int(pid) for children in of_host for pid in children.read_text().split()}
    named = {pid for pid in pids if b"warm.py" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    (found,) = named - {sidecar.pid for sidecar in sidecars}
    return found


def test_sidecars_load_their_plugin_once_and_are_apart_all_the_same(host: HostUnderTest, tmp_path: Path) -> None:
    folder = plugin(tmp_path)
    one, two = host.acquire("one", folder), host.acquire("two", folder)
    assert one.pid != two.pid
    assert [os.getsid(each.pid) for each in (one, two)] == [one.pid, two.pid]
    assert [parent_of(each.pid) for each in (one, two)] == [host.process.pid] * 2
    limits = Path(f"/proc/{two.pid}/limits").read_text()
    assert next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")) == "300"
    assert host.lines("warm") == ["loaded"]
    assert warm_process(host, one, two)
    os.kill(one.pid, signal.SIGKILL)
    assert host.exit_of(one.pid).message.startswith("was killed by SIGKILL")
    assert is_alive(two.pid)


def test_the_death_of_the_warm_process_harms_no_sidecar(host: HostUnderTest, tmp_path: Path) -> None:
    folder = plugin(tmp_path)
    one = host.acquire("one", folder)
    warm = warm_process(host, one)
    os.kill(warm, signal.SIGKILL)
    wait_until(lambda: not is_alive(warm))
    two = host.acquire("two", folder)
    assert is_alive(one.pid)
    assert warm_process(host, one, two) != warm


def test_a_plugin_with_a_thread_is_started_the_plain_way(host: HostUnderTest, tmp_path: Path) -> None:
    folder = plugin(tmp_path, "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
    acquired = host.acquire("one", folder)
    assert is_alive(acquired.pid)
    assert host.lines("one")[0] == "loaded"


def test_a_plugin_that_cannot_be_loaded_is_told_with_its_last_words(host: HostUnderTest, tmp_path: Path) -> None:
    folder = plugin(tmp_path, "raise SystemExit('no driver here')")
    with pytest.raises(ConnectorBugError, match=r"(?s)ended with code 1.*no driver here"):
        host.acquire("one", folder)


def test_what_a_sidecar_leaves_behind_does_not_stay_as_a_zombie(host: HostUnderTest, tmp_path: Path) -> None:
    acquired = host.acquire("one", plugin(tmp_path))
    wait_until(lambda: any(line.startswith("left ") for line in host.lines("one")))
    left = int(next(line for line in host.lines("one") if line.startswith("left ")).split()[1])
    os.kill(acquired.pid, signal.SIGKILL)
    wait_until(lambda: parent_of(left) == host.process.pid)
    os.kill(left, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{left}").exists())


def test_a_killed_host_leaves_nothing(host: HostUnderTest, tmp_path: Path) -> None:
    acquired = host.acquire("one", plugin(tmp_path))
    warm = warm_process(host, acquired)
    host.process.kill()
    host.process.wait()
    wait_until(lambda: not is_alive(acquired.pid) and not is_alive(warm))
