"""SIGKILL of a sidecar, of a worker, of the coordinator; SIGTERM: nothing lost, little twice, soon over."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest
from tests.chaos import limits
from tests.chaos.clean import stop_cleanly, wait_for_orphans
from tests.chaos.conftest import MakeRun
from tests.chaos.run import Run, Watched
from tests.support.standalone import send
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka


@pytest.mark.integration
def test_a_killed_sidecar_is_replaced_and_nothing_is_lost(
    kafka: EmbeddedKafka, new_run: MakeRun, recovery_s: float
) -> None:
    with new_run(kafka) as run:
        for watched in _shuffled(run):
            run.fault(watched, partial(_kill_sidecar, run, watched))
        run.finish()
        run.judge()
        stop_cleanly(run.system)
    _assert_recovered(run, recovery_s)


@pytest.mark.integration
def test_killed_workers_are_replaced_and_nothing_is_lost(
    kafka: EmbeddedKafka, new_run: MakeRun, recovery_s: float
) -> None:
    with new_run(kafka) as run:
        for watched in _shuffled(run):
            run.fault(watched, partial(_kill_workers, run, watched))
        run.finish()
        run.judge()
        stop_cleanly(run.system)
    _assert_recovered(run, recovery_s)


@pytest.mark.integration
def test_after_a_sigterm_everything_goes_on_without_a_duplicate(kafka: EmbeddedKafka, new_run: MakeRun) -> None:
    with new_run(kafka) as run:
        _wait_for_moment(run)
        stop_cleanly(run.system)
        run.start_again()
        run.finish()
        verdicts = run.judge()
        stop_cleanly(run.system)
    for name, partitions in verdicts.items():
        assert not any(verdict.duplicates for verdict in partitions.values()), f"{name}: {partitions}"


def test_a_killed_coordinator_takes_everything_along_and_goes_on_when_started_again(
    kafka: EmbeddedKafka, new_run: MakeRun
) -> None:
    with new_run(kafka) as run:
        _wait_for_moment(run)
        run.note_committed()
        run.system.kill()
        begun = time.monotonic()
        wait_for_orphans(run.system)
        print(f"all its processes have ended {time.monotonic() - begun:.2f} s after the coordinator")
        run.start_again()
        run.finish()
        run.judge()
        # What the killed one could not remove must be gone at the latest when the next one ends.
        stop_cleanly(run.system)


def test_a_killed_sidecar_host_is_replaced_and_nothing_is_lost(kafka: EmbeddedKafka, new_run: MakeRun) -> None:
    with new_run(kafka) as run:
        _wait_for_moment(run)
        run.note_committed()
        (host,) = run.system.processes("host")
        _kill(host.pid)
        run.finish()
        run.judge()
        stop_cleanly(run.system)


def _shuffled(run: Run) -> list[Watched]:
    """The flows in a random order; each is hurt later than the one before, which the feeding must still outlast."""
    several = list(run.watched)
    run.random.shuffle(several)
    return several


def _wait_for_moment(run: Run) -> None:
    share = run.random.uniform(limits.EARLIEST_FAULT, limits.LATEST_FAULT)
    total = sum(watched.records for watched in run.watched)
    run.wait_until(
        lambda: sum(watched.delivered for watched in run.watched) >= total * share, f"{share:.0%} have arrived"
    )


def _kill(pid: int) -> None:
    assert send(pid, signal.SIGKILL), f"process {pid} had ended before it was killed"


def _kill_sidecar(run: Run, watched: Watched) -> None:
    _kill(run.system.sidecar_of(watched.flow.name))


def _kill_workers(run: Run, watched: Watched) -> None:
    """Kills all of a flow's: a partition that went on beside would hide how long the others stood still."""
    assert eventually(lambda: run.system.workers_of(watched.flow.name) != []), f"{watched.flow.name} has no lease"
    for pid in run.system.workers_of(watched.flow.name):
        _kill(pid)


def _assert_recovered(run: Run, within_s: float) -> None:
    seconds = {watched.flow.name: run.recovery_s(watched) for watched in run.watched}
    assert max(seconds.values()) <= within_s, seconds
