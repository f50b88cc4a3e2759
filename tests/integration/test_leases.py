"""Leases on a real Spark: launched, killed, drained, fenced; over real gRPC, with a lease that only counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.contract.plan import Plan, Work
from wherry.coordinator import events as ev
from wherry.coordinator.api import TargetState
from wherry.coordinator.lease import LeaseTimes
from wherry.coordinator.spark import SparkEngine
from wherry.coordinator.sparksettings import SparkSettings

HERE = Path(__file__).parent / "leases"
sys.path.insert(0, str(HERE))

from bench_of_parts import Bench, log_plan  # noqa: E402 - it sits beside the module that Spark's workers import

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{before}"
    events: list[ev.Event] = []
    engine = SparkEngine(
        SparkSettings("local[16,4]", run_directory=tmp_path_factory.mktemp("spark")),
        events.append,
        entry="fake_lease:run",
    )
    engine.start()
    Bench.until(lambda: bool(events), 60)
    assert isinstance(events[0], ev.EngineUp), events
    yield engine
    engine.stop()
    os.environ["PYTHONPATH"] = before


@pytest.fixture
def bench(engine: SparkEngine, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "run")
    bench.start(engine)
    yield bench
    bench.close()


def test_a_lease_moves_positions_and_ends_when_paused(bench: Bench) -> None:
    bench.put("log", log_plan())
    bench.until(lambda: bench.reached("log", '{"log":0}') > 10, 60)
    bench.runner.post(ev.TargetSet("log", TargetState.PAUSED))
    took = bench.until(lambda: bench.states("log") == {0: "PAUSED"}, 60)
    assert took < 30, "in good order, long before the end of a drain"
    paused_at = bench.reached("log", '{"log":0}')
    bench.runner.post(ev.TargetSet("log", TargetState.STARTED))
    bench.until(lambda: bench.reached("log", '{"log":0}') > paused_at + 5, 60)
    numbers = [int(p.offset[5:-1]) for _, p in bench.offsets.history if p.offset]
    assert numbers == list(range(1, len(numbers) + 1)), "every position once, in order, over the pause"


def test_a_killed_worker_is_replaced_long_before_its_silence_would_tell(bench: Bench) -> None:
    bench.put("log", log_plan())
    bench.until(lambda: bench.reached("log", '{"log":0}') > 10, 60)
    (pid,) = bench.worker_pids("log")
    os.kill(pid, signal.SIGKILL)
    at_kill = bench.reached("log", '{"log":0}')
    took = bench.until(
        lambda: bench.worker_pids("log") not in ([], [pid]) and bench.reached("log", '{"log":0}') > at_kill + 5, 60
    )
    print(f"recovered after {took:.2f} s")
    assert took < 60, "Spark has told"
    numbers = [int(p.offset[5:-1]) for _, p in bench.offsets.history if p.offset]
    assert numbers == sorted(numbers), "the new attempt went on from what was committed"


def test_killing_one_worker_leaves_the_other_tasks_alone(bench: Bench) -> None:
    tasks = tuple(Work(str(n), b"{}", partitions=(f'{{"log":{n}}}',)) for n in range(3))
    bench.put("logs", lambda effect, positions: Plan(tasks=tasks), tasks_max=3)
    bench.until(lambda: all(bench.reached("logs", f'{{"log":{n}}}') > 5 for n in range(3)), 60)
    victim, *others = bench.worker_pids("logs")
    os.kill(victim, signal.SIGKILL)
    bench.until(lambda: victim not in bench.worker_pids("logs") and len(bench.worker_pids("logs")) == 3, 5)
    assert set(others) <= set(bench.worker_pids("logs"))


def test_a_worker_that_hangs_is_replaced_and_its_process_ended(engine: SparkEngine, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", times=LeaseTimes(silence_ms=5_000, drain_ms=1_000))
    bench.start(engine)
    try:
        tasks = tuple(Work(str(n), b"{}", partitions=(f'{{"log":{n}}}',)) for n in range(2))
        bench.put("logs", lambda effect, positions: Plan(tasks=tasks), tasks_max=2)
        bench.until(lambda: all(bench.reached("logs", f'{{"log":{n}}}') > 5 for n in range(2)), 60)
        victim, other = bench.worker_pids("logs")
        os.kill(victim, signal.SIGSTOP)
        bench.until(lambda: len(bench.worker_pids("logs")) == 2 and victim not in bench.worker_pids("logs"), 60)
        bench.until(lambda: not Path(f"/proc/{victim}").exists(), 60)
        assert other in bench.worker_pids("logs"), "the other lease of the same Spark job went on"
    finally:
        bench.close()


def test_splits_are_a_shared_queue_and_each_is_read_once(bench: Bench) -> None:
    splits = tuple(Work(f"s{n}", b'{"steps": 5}', partitions=(f'{{"split":{n}}}',)) for n in range(12))

    def plan(effect: object, positions: object) -> Plan:
        done = {position.partition for position in positions}  # type: ignore[attr-defined]
        return Plan(splits=tuple(split for split in splits if split.partitions[0] not in done), complete=True)

    bench.put("queue", plan, tasks_max=3, splits=True)
    bench.until(lambda: all(bench.reached("queue", split.partitions[0]) == 5 for split in splits), 60)
    bench.until(lambda: bench.runner.ask(lambda m: m.idle), 60)
    written = [position.partition for _, position in bench.offsets.history]
    assert all(written.count(split.partitions[0]) == 5 for split in splits), "no split was read twice"
    assert bench.states("queue") == {0: "RUNNING", 1: "RUNNING", 2: "RUNNING"}, "parked tasks show RUNNING"


def test_positions_that_cannot_be_stored_fail_the_task_and_it_recovers(bench: Bench) -> None:
    bench.put("log", log_plan(), restart=ev.RestartPolicy(base_ms=50))
    bench.until(lambda: bench.reached("log", '{"log":0}') > 5, 60)
    bench.offsets.broken = True
    bench.until(lambda: bench.states("log") == {0: "RESTARTING"}, 60)
    trace = bench.runner.ask(lambda m: m.shown("log"))
    assert trace is not None
    assert "The disk is full." in trace.tasks[0][1]
    bench.offsets.broken = False
    before = bench.reached("log", '{"log":0}')
    bench.until(lambda: bench.reached("log", '{"log":0}') > before + 5, 60)


def test_a_deleted_connector_leaves_no_lease(bench: Bench) -> None:
    bench.put("log", log_plan())
    bench.until(lambda: bench.reached("log", '{"log":0}') > 5, 60)
    bench.runner.post(ev.ConnectorDeleted("log"))
    bench.until(lambda: bench.runner.ask(lambda m: not m.connectors() and m.idle), 60)


def test_a_dead_jvm_is_started_again_and_leases_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    # PySpark has one context in a process: this story needs a process of its own.
    story = subprocess.run(
        [sys.executable, str(HERE / "dead_jvm.py"), str(tmp_path)], capture_output=True, text=True, timeout=280
    )
    assert story.returncode == 0, story.stderr[-2000:]
    assert "went on" in story.stdout
