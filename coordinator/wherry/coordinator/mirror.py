"""Runs MirrorMaker's own file: `wherry mirror`.

Every flow is a worker of its own, as with MirrorMaker: its cluster is the target, where its topics are, and when it
leads there it sees to it that the file's connectors run. A process has room for one Spark, and so for one flow; a file
of several flows is run by a process that starts one for each, and starts it anew when it ends by itself.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wherry.contract.errors import ConfigError, WherryError
from wherry.coordinator.api import ApiError
from wherry.coordinator.config import properties
from wherry.coordinator.config.mirrormaker import Flow, flows_of, unused
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.distributed import DistributedWorker
from wherry.coordinator.main import StandaloneWorker, run, tell_versions
from wherry.coordinator.manners import STOP_MS_MIN, stop_ms

_log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""After a configuration could not be written because something did not answer."""
LOOK_S: Final = 0.2
RESTART_S: Final = 1.0
RESTART_MAX_S: Final = 60.0
STEADY_S: Final = 300.0
"""A flow that has run for so long has its pauses begin anew."""
END_SPARE_S: Final = 1.0
"""Beyond what a flow gives its tasks to end, before its process is killed."""
_CONFIG_WRONG: Final = 1
"""Exit code of a process that no restart would help; see the command line's."""
_PR_SET_PDEATHSIG: Final = 1
_PARENT: Final = "WHERRY_FLOWS_PARENT"
"""Names the process that looks after a flow, to the flow's own."""


def load(path: Path, targets: Sequence[str] = ()) -> list[Flow]:
    """Read MirrorMaker's file; see `flows_of`."""
    try:
        values = properties.load(path)
        flows = flows_of(values, targets)
    except ConfigError as error:
        if str(path) in error.message:
            raise
        raise ConfigError(f"{path}: {error.message}", key=error.key) from error
    for key in unused(values):
        # Each flow's own process would only say so again.
        if not os.environ.get(_PARENT):
            _log.warning("%s: %s has no effect here; say it of a flow: %s.%s", path, key, flows[0].name, key)
    return flows


class FlowWorker(DistributedWorker):
    """A worker of one flow. While it leads, connectors are what the file says.

    Args:
        worker: Its configuration.
        flow: The flow.
    """

    def __init__(self, worker: WorkerConfig, flow: Flow) -> None:
        self._flow = flow
        self._leads = threading.Event()
        super().__init__(worker)

    def lead(self) -> None:
        """Take up all connectors, then bring them up to date."""
        super().lead()
        self._leads.set()
        threading.Thread(target=self._guard, args=(self._put,), name="flow", daemon=True).start()

    def depose(self) -> None:
        """Leave the connectors to who leads now."""
        self._leads.clear()
        super().depose()

    def _put(self) -> None:
        """Write the configurations that are not yet what the file says; what rests goes on resting."""
        for name, config in self._flow.connectors.items():
            while self._leads.is_set() and not self._closing.is_set():
                stored = self._kept.configs.snapshot().connectors.get(name)
                if stored is not None and dict(stored.config) == dict(config):
                    break
                try:
                    self.herder.put_config(name, config)
                    _log.info("%s: %s is configured", self._flow.name, name)
                    break
                except ApiError as error:
                    if error.status == 400:
                        raise ConfigError(f"{self._flow.name}: {name} can't run: {error.message}") from error
                    _log.warning("%s: %s can't be configured yet: %s", self._flow.name, name, error.message)
                except WherryError as error:
                    _log.warning("%s: %s can't be configured yet: %s", self._flow.name, name, error.message)
                self._closing.wait(RETRY_S)


def run_flow(
    flow: Flow,
    *,
    ready: Callable[[StandaloneWorker], None] = lambda worker: None,
    stuck: Callable[[], None] = lambda: None,
) -> None:
    """Run the worker of one flow until it cannot go on; see `main.standalone`."""
    tell_versions()
    config = WorkerConfig.of(flow.worker, distributed=True, source=flow.name)
    run(lambda: FlowWorker(config, flow), ready=ready, stuck=stuck)


@dataclass(slots=True)
class _Child:
    """The process of a flow, and how long its end may take."""

    flow: Flow
    end_s: float = STOP_MS_MIN / 1000 + END_SPARE_S
    process: subprocess.Popen[bytes] | None = None
    began_s: float = 0.0
    due_s: float = 0.0
    pause_s: float = RESTART_S


def run_flows(flows: Sequence[Flow], arguments: Sequence[str]) -> int:
    """Run a process for each of several flows, until an exception (a signal's) ends the wait.

    Args:
        flows: The flows.
        arguments: Of the command, to which `--flow NAME` is added.

    Returns:
        The exit code of a flow whose settings are wrong.
    """
    children = [_Child(flow, end_s_of(flow)) for flow in flows]
    try:
        while True:
            for child in children:
                code = _look_after(child, arguments)
                if code == _CONFIG_WRONG:
                    return code
            time.sleep(LOOK_S)
    finally:
        _end(children)


def die_with_parent() -> None:
    """End this process when the one that looks after its flow is gone; without such a one do nothing."""
    parent = os.environ.pop(_PARENT, "")
    if not parent:
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGTERM)


def _look_after(child: _Child, arguments: Sequence[str]) -> int | None:
    """Start the process when it is due; answer the code with which it has ended."""
    now = time.monotonic()
    if child.process is None:
        if now >= child.due_s:
            command = [sys.executable, "-m", "wherry.coordinator.cli", *arguments, "--flow", child.flow.name]
            # A Ctrl-C is meant for this process, which passes it on once.
            environment = {**os.environ, _PARENT: str(os.getpid())}
            child.process = subprocess.Popen(command, start_new_session=True, env=environment)
            child.began_s = now
            _log.info("Flow %s runs in process %d", child.flow.name, child.process.pid)
        return None
    code = child.process.poll()
    if code is None:
        return None
    child.process = None
    if now - child.began_s > STEADY_S:
        child.pause_s = RESTART_S
    child.due_s, child.pause_s = now + child.pause_s, min(child.pause_s * 2, RESTART_MAX_S)
    if code != _CONFIG_WRONG:
        pause_s = child.due_s - now
        _log.error("Flow %s has ended with code %d; it starts again in %.0f s", child.flow.name, code, pause_s)
    return code


def end_s_of(flow: Flow) -> float:
    """How long the process of a flow may take to end: what its worker gives its tasks, and a little more."""
    try:
        worker_ms = stop_ms(WorkerConfig.of(flow.worker, distributed=True, source=flow.name))
    except ConfigError:
        worker_ms = STOP_MS_MIN  # its own process says what is wrong, and ends by itself
    return worker_ms / 1000 + END_SPARE_S


def _end(children: Sequence[_Child]) -> None:
    """End all flows side by side, each in its own time."""
    running = [(child.process, child.end_s) for child in children if child.process is not None]
    for process, _ in running:
        process.terminate()
    began_s = time.monotonic()
    for process, end_s in sorted(running, key=lambda each: each[1]):
        try:
            process.wait(max(began_s + end_s - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
