"""What goes away for a while and comes back: the broker, a sidecar that is frozen, room on a disk."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos import limits
from tests.chaos.clean import stop_cleanly
from tests.chaos.conftest import MakeRun
from tests.support.standalone import send
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka

DISK_FULL_S = 8.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, so that filling it harms nobody."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "wherry-chaos", str(mounted)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"only root may mount the small disk this needs: {done.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def test_after_ten_seconds_without_the_broker_everything_goes_on(own_kafka: EmbeddedKafka, new_run: MakeRun) -> None:
    with new_run(own_kafka) as run:
        run.fault(run.watched[0], own_kafka.kill)
        time.sleep(limits.OUTAGE_S)
        assert run.system.rest.answers(), "REST has to answer while the broker is away"
        own_kafka.start()
        back_at = time.monotonic()
        run.finish()
        print(f"everything had arrived {time.monotonic() - back_at:.1f} s after the broker was back")
        run.judge()
        stop_cleanly(run.system)


def test_a_sidecar_frozen_for_half_a_minute_goes_on_and_harms_no_other(kafka: EmbeddedKafka, new_run: MakeRun) -> None:
    with new_run(kafka) as run:
        watched = run.random.choice(run.watched)
        pid = run.system.sidecar_of(watched.flow.name)
        run.fault(watched, lambda: None if send(pid, signal.SIGSTOP) else pytest.fail("the sidecar was gone"))
        frozen_at = time.monotonic()
        others = [other for other in run.watched if other is not watched]
        for other in others:
            run.wait_until(other.is_complete, f"{other.flow.name} has everything")
        assert time.monotonic() - frozen_at < limits.FREEZE_S, "the others waited for the frozen one"
        time.sleep(limits.FREEZE_S - (time.monotonic() - frozen_at))
        send(pid, signal.SIGCONT)  # it may have been replaced meanwhile, and be gone
        run.finish()
        print(f"{watched.flow.name} was frozen; all had arrived {time.monotonic() - frozen_at:.1f} s after that began")
        run.judge()
        stop_cleanly(run.system)


def test_a_full_disk_at_the_sink_loses_nothing_and_is_told(
    kafka: EmbeddedKafka, new_run: MakeRun, small_disk: Path
) -> None:
    with new_run(kafka, flows=("kafka-file",), directory=small_disk) as run:
        (watched,) = run.watched
        run.fault(watched, lambda: _fill(small_disk))
        # The free space at that moment may still take some records, never all that follow.
        eventually(watched.is_complete, DISK_FULL_S)
        assert not watched.is_complete(), "the disk was not full"
        assert "No space left on device" in run.told() + run.system.log_tail(), run.told()
        (small_disk / "filler").unlink()
        run.finish()
        run.judge()
        stop_cleanly(run.system)


def _fill(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as filler:
        for chunk in (1 << 20, 1 << 12):
            try:
                while True:
                    filler.write(b"\0" * chunk)
            except OSError:
                continue
