"""A sidecar, or the host of all, is killed before a question or in the middle of it: another one answers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.plugins import running_hosts, write_plugin
from tests.support.waiting import eventually

from wherry.contract.client import Validation
from wherry.contract.description import Role
from wherry.contract.errors import TransientError
from wherry.contract.manifest import Manifest
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2
from wherry.coordinator.events import ConnectorSpec, Kind
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.planner import Planner
from wherry.coordinator.probe import PluginProber

pytestmark = pytest.mark.integration

CODE = """\
import os, pathlib, time
from wherry.sdk import Config, Plan, Source, key, serve

def ask(what, folder):
    '''Tells who is asked; is stuck where there is a file that says so, which only the first one finds.'''
    folder = pathlib.Path(folder)
    with (folder / what).open("a") as file:
        file.write(f"{os.getpid()}\\n")
    try:
        (folder / "stuck").unlink()
    except FileNotFoundError:
        return
    time.sleep(600)

class AskedConfig(Config):
    folder: str = key()

class Asked(Source[AskedConfig]):
    class_name = "test.Asked"

    @classmethod
    def validate(cls, config, connect):
        ask("validate", config.folder)
        return {}

    @classmethod
    def alter_offsets(cls, config, offsets, validate_only):
        ask("alter", config.folder)
        return True

    def on_delete(self):
        ask("delete", self.config.folder)

    def plan(self, offsets, max_tasks):
        return Plan()

    def read(self, work, offsets):
        yield from ()

if __name__ == "__main__":
    serve(Asked, name="asked", version="1")
"""
SPEC = ConnectorSpec("one", Kind.SOURCE, {})


class Place:
    """The plugin, and what its processes write down."""

    def __init__(self, folder: Path, hosts: HostClient) -> None:
        self.folder = folder
        self.manifest = Manifest.load(write_plugin(folder / "plugin", "asked", CODE, class_name="test.Asked"))
        self.prober = PluginProber(hosts)
        grants = SimpleNamespace(
            sidecar=self.sidecar,
            altering=lambda spec, generation: [self.sidecar(spec, generation)],
            shares_planning=lambda spec: False,
            description=lambda spec: SimpleNamespace(capabilities=SimpleNamespace(watch=False)),
        )
        self.planner = Planner(hosts, None, grants, lambda event: None, lambda name, values: None)  # type: ignore[arg-type]

    def sidecar(self, spec: ConnectorSpec, generation: int) -> lease_pb2.SidecarSpec:
        return lease_pb2.SidecarSpec(
            plugin="asked",
            plugin_directory=str(self.manifest.directory),
            class_name="test.Asked",
            role=int(Role.SOURCE),  # type: ignore[arg-type]  # an enum of the wire is a number here
            connector=spec.name,
            generation=generation,
            config={"folder": str(self.folder)},
        )

    def validate(self) -> object:
        return self.prober.validate(self.manifest, "test.Asked", {"folder": str(self.folder)}, {})

    def pids(self, what: str) -> list[int]:
        path = self.folder / what
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def killed_in_the_middle(self, what: str, ask: Callable[[], object], victim: Callable[[int], int]) -> object:
        """The answer to a question whose first process, or another one, is killed while it thinks."""
        (self.folder / "stuck").touch()
        before = len(self.pids(what))
        killer = threading.Thread(target=self._kill, args=(what, before, victim), daemon=True)
        killer.start()
        answer = ask()
        killer.join(60)
        asked = self.pids(what)[before:]
        assert len(asked) == 2, "each of two processes was asked once"
        assert asked[0] != asked[1]
        return answer

    def _kill(self, what: str, before: int, victim: Callable[[int], int]) -> None:
        if eventually(lambda: len(self.pids(what)) > before and not (self.folder / "stuck").exists()):
            os.kill(victim(self.pids(what)[-1]), signal.SIGKILL)


@pytest.fixture(scope="module")
def hosts() -> Iterator[HostClient]:
    with running_hosts() as made:
        yield made


@pytest.fixture
def place(hosts: HostClient, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, hosts)
    yield made
    made.prober.close()


def itself(pid: int) -> int:
    return pid


def test_a_configuration_is_checked_though_the_process_was_killed_right_before(place: Place) -> None:
    for _ in range(2):
        assert place.validate() == Validation()
        os.kill(place.pids("validate")[-1], signal.SIGKILL)
    assert place.validate() == Validation()
    assert len(set(place.pids("validate"))) == 3


def test_a_configuration_is_checked_though_the_process_is_killed_in_the_middle(place: Place) -> None:
    assert place.killed_in_the_middle("validate", place.validate, itself) == Validation()


def test_a_configuration_is_checked_though_the_host_is_killed_in_the_middle(place: Place, hosts: HostClient) -> None:
    assert hosts._process is not None
    host = hosts._process.pid
    assert place.killed_in_the_middle("validate", place.validate, lambda pid: host) == Validation()


def test_a_plugin_that_is_killed_every_time_is_told_of(place: Place) -> None:
    stuck = place.folder / "stuck"
    stuck.touch()
    ended = threading.Event()

    def kill() -> None:
        seen = 0
        while not ended.is_set():
            pids = place.pids("validate")
            if len(pids) > seen and not stuck.exists():
                stuck.touch()  # for the next one
                os.kill(pids[-1], signal.SIGKILL)
                seen = len(pids)
            time.sleep(0.01)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(TransientError):
        place.validate()
    ended.set()
    killer.join(60)
    assert len(place.pids("validate")) == 2


def test_offsets_are_altered_and_a_deletion_is_told_though_the_sidecar_is_killed_in_the_middle(place: Place) -> None:
    positions = [Position('{"p":1}', '{"o":1}')]
    assert place.killed_in_the_middle("alter", lambda: place.planner.alter_offsets(SPEC, 1, positions), itself)
    place.killed_in_the_middle("delete", lambda: place.planner.on_delete(SPEC, 1), itself)
