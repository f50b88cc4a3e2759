"""Which sidecars are forked, which are started the plain way, and how long a warm process is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import TransientError
from wherry.contract.manifest import Manifest
from wherry.worker.host import parents
from wherry.worker.host.logs import EventHub
from wherry.worker.host.parents import IDLE_S, PLAIN_S, ForkedChild, WarmParents
from wherry.worker.host.process import Command


class Loop:
    """Starts nothing; a warm process cannot be had from it."""

    adopts_orphans = True

    def __init__(self) -> None:
        self.tried = 0

    def start(self, command: Command, **callbacks: Any) -> Any:
        self.tried += 1
        raise TransientError("no process now")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def warm_parents(loop: Loop, clock: Clock) -> WarmParents:
    return WarmParents(loop, EventHub(), clock=clock)  # type: ignore[arg-type]


def manifest(*, forkable: bool = True) -> Manifest:
    return Manifest("p", "1", Path("/p"), (), run=("python", "p.py"), forkable=forkable, digest="d")


COMMAND = Command(argv=("/bin/false",), environment={}, directory=Path("/"))


def test_a_plugin_that_may_not_be_forked_is_started_the_plain_way(warm_parents: WarmParents, loop: Loop) -> None:
    assert warm_parents.starter(manifest(forkable=False)) is loop


def test_a_host_that_cannot_adopt_forks_nothing(warm_parents: WarmParents, loop: Loop) -> None:
    loop.adopts_orphans = False
    assert warm_parents.starter(manifest()) is loop


def test_what_could_not_be_forked_is_started_the_plain_way_for_a_while(
    warm_parents: WarmParents, loop: Loop, clock: Clock
) -> None:
    warm_parents.starter(manifest())
    warm = warm_parents._warm["d"]
    assert warm_parents.fork(warm, COMMAND) is None
    assert warm_parents.fork(warm, COMMAND) is None
    assert loop.tried == 1
    clock.now += PLAIN_S + 1
    warm_parents.fork(warm, COMMAND)
    assert loop.tried == 2


def test_a_warm_process_is_ended_when_nobody_has_used_it(warm_parents: WarmParents, clock: Clock) -> None:
    warm_parents.starter(manifest())
    clock.now += IDLE_S - 1
    warm_parents.sweep()
    assert warm_parents._warm
    clock.now += 2
    warm_parents.sweep()
    assert not warm_parents._warm


def test_one_in_use_is_kept_however_long_that_takes(warm_parents: WarmParents, clock: Clock) -> None:
    warm_parents.starter(manifest())
    clock.now += IDLE_S + 1
    with warm_parents._warm["d"].lock:
        warm_parents.sweep()
    assert warm_parents._warm


def test_no_more_plugins_than_the_most_are_kept_warm(
    warm_parents: WarmParents, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents, "PARENTS_MAX", 0)
    assert warm_parents.starter(manifest()) is loop


def test_a_child_that_somebody_else_has_reaped_is_no_trouble(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        assert ForkedChild(2**22 - 1, output).wait() == 0
