"""The coordinator's parts on a bench: real machine, runner, control server and Spark; plans and grants are scripted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wherry.contract import to_proto
from wherry.contract.errors import TransientError
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.commits import PositionKeeper
from wherry.coordinator.control import ControlServer
from wherry.coordinator.figures import Figures
from wherry.coordinator.hands import Hands
from wherry.coordinator.lease import LeaseTimes
from wherry.coordinator.machine import Machine
from wherry.coordinator.runner import Lanes, Runner
from wherry.coordinator.spark import SparkEngine
from wherry.coordinator.staged import StagedCommits
from wherry.coordinator.store import ConfigSnapshot


class MemoryOffsets:
    """An offset store that remembers every write."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.positions: dict[str, dict[str, str]] = {}
        self.history: list[tuple[str, Position]] = []
        self.broken = False

    def load(self, connector: str) -> list[Position]:
        with self.lock:
            return [Position(p, o) for p, o in self.positions.get(connector, {}).items()]

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        if self.broken:
            raise TransientError("The disk is full.")
        with self.lock:
            kept = self.positions.setdefault(connector, {})
            for position in positions:
                self.history.append((connector, position))
                if position.offset is None:
                    kept.pop(position.partition, None)
                else:
                    kept[position.partition] = position.offset

    def reset(self, connector: str) -> None:
        with self.lock:
            self.positions.pop(connector, None)


class _Configs:
    def snapshot(self) -> ConfigSnapshot:
        return ConfigSnapshot(0)


class _Statuses:
    def put(self, status: Any) -> None: ...

    def remove(self, connector: str, task: int | None = None) -> None: ...


class _Hosts:
    def stop_connector(self, connector: str, below_generation: int = 0, **_: Any) -> int:
        return 0


class _Description:
    class_name = "wherry.test.FakeConnector"


class _Grants:
    def description(self, spec: ev.ConnectorSpec) -> _Description:
        return _Description()

    def stages(self, spec: ev.ConnectorSpec) -> bool:
        return False

    def lease(self, effect: fx.GrantLease, positions: Sequence[Position]) -> lease_pb2.OpenLeaseResponse:
        response = lease_pb2.OpenLeaseResponse(
            task=effect.task,
            split=effect.work.split,
            positions=to_proto.positions(positions),
            partitions_json=effect.work.partitions,
        )
        if effect.work.work is not None:
            response.work.CopyFrom(to_proto.work(effect.work.work))
        return response


class ScriptedPlanner:
    """Plans by the function of each connector, and remembers what it was asked."""

    def __init__(self) -> None:
        self.plans: dict[str, Callable[[fx.LoadPlan, Sequence[Position]], Plan]] = {}
        self.asked: list[fx.LoadPlan] = []

    def plan(self, effect: fx.LoadPlan, positions: Sequence[Position]) -> ev.SourcePlan:
        self.asked.append(effect)
        return ev.SourcePlan(self.plans[effect.connector](effect, positions))

    def release(self, connector: str) -> bool:
        return True

    def on_delete(self, spec: ev.ConnectorSpec, generation: int) -> None: ...

    def apply_tokens(self, *_: Any) -> None: ...


class Bench:
    """Starts the parts over a Spark engine that is already there."""

    def __init__(self, directory: Path, *, times: LeaseTimes | None = None) -> None:
        self.offsets = MemoryOffsets()
        self.planner = ScriptedPlanner()
        self.machine = Machine(
            generation=int(time.time()), times=times or LeaseTimes(silence_ms=120_000, drain_ms=60_000)
        )
        self.runner = Runner(self.machine, lambda effect: self.hands.carry_out(effect))
        self.figures = Figures(lambda *_: None)
        keeper = PositionKeeper(self.offsets, None, sleep=lambda s: None)  # type: ignore[arg-type]
        self.control = ControlServer(self.runner.post, keeper.load_source, self.figures, directory)
        self.engine: SparkEngine | None = None
        self.hands: Any = None
        self._keeper = keeper

    def start(self, engine: SparkEngine) -> None:
        self.engine = engine
        engine._post = self.runner.post
        self.hands = Hands(
            post=self.runner.post,
            lanes=Lanes(),
            control=self.control,
            spark=engine,
            hosts=_Hosts(),  # type: ignore[arg-type]
            keeper=self._keeper,
            staged=StagedCommits(self.offsets, self.planner.apply_tokens, self._keeper.commit),
            planner=self.planner,  # type: ignore[arg-type]
            watcher=_NoWatcher(),  # type: ignore[arg-type]
            grants=_Grants(),  # type: ignore[arg-type]
            figures=self.figures,
            configs=_Configs(),  # type: ignore[arg-type]
            statuses=_Statuses(),  # type: ignore[arg-type]
            worker_id="here:0",
        )
        self.control.start()
        self.runner.start()
        self.runner.post(ev.EngineUp())

    def close(self) -> None:
        self.runner.post(ev.ShutdownAsked())
        self.until(lambda: self.runner.ask(lambda m: m.idle), 90)
        self.hands.lanes.close(10)
        self.control.stop(0)
        self.runner.stop()

    def put(self, name: str, plan: Callable[[fx.LoadPlan, Sequence[Position]], Plan], **spec: Any) -> None:
        self.planner.plans[name] = plan
        self.runner.post(ev.ConnectorPut(name, ev.ConnectorSpec(name, ev.Kind.SOURCE, {"name": name}, **spec)))

    def states(self, name: str) -> dict[int, str]:
        shown = self.runner.ask(lambda m: m.shown(name))
        return {} if shown is None else {task: state.value for task, (state, _) in shown.tasks.items()}

    def reached(self, name: str, partition: str) -> int:
        offset = self.offsets.positions.get(name, {}).get(partition)
        return 0 if offset is None else int(offset[5:-1])

    def worker_pids(self, name: str) -> list[int]:
        leases = self.runner.ask(lambda m: list(m.leases()))
        return [int(lease.worker.rpartition(":")[2]) for lease in leases if lease.connector == name and lease.worker]

    @staticmethod
    def until(true: Callable[[], bool], timeout_s: float) -> float:
        """Wait until something is true; answers how long it took."""
        began = time.monotonic()
        while not true():
            if time.monotonic() - began > timeout_s:
                raise AssertionError(f"not so within {timeout_s} s")
            time.sleep(0.02)
        return time.monotonic() - began


class _NoWatcher:
    def forget(self, connector: str) -> None: ...

    def follow(self, *_: Any) -> None: ...


def log_plan(**descriptor: Any) -> Callable[[fx.LoadPlan, Sequence[Position]], Plan]:
    """A plan of one unbounded task over the partition {"log":0}."""
    import json

    task = Work("0", json.dumps(descriptor).encode(), partitions=('{"log":0}',))
    return lambda effect, positions: Plan(tasks=(task,))
