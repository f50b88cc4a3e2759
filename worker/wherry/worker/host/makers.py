"""Has the environments of plugins made by a process of their own, once for everybody who waits.

Decides nothing about what is in an environment. A caller that runs out of time leaves; the making goes on, so that a
later call finds it done.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Final

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.manifest import Manifest
from wherry.worker.host import environment
from wherry.worker.host.bootstrap import Deadline
from wherry.worker.host.environment import Runtime
from wherry.worker.host.logs import EventHub, SidecarEvent
from wherry.worker.host.process import Command, Exit, ProcessLoop, SidecarProcess, with_tail

_MODULE: Final = "wherry.worker.host.environment"


class EnvironmentMaker:
    """Environments being made, by the place they will be at. May be used from any thread."""

    def __init__(self, loop: ProcessLoop, hub: EventHub) -> None:
        self._loop = loop
        self._hub = hub
        self._lock = threading.Lock()
        self._making: dict[Path, SidecarProcess] = {}

    def ensure(self, manifest: Manifest, deadline: Deadline) -> Runtime:
        """Return how to run a plugin, waiting for its environment to be made.

        Raises:
            TransientError: It is still being made, or can't be made now.
            ConfigError: It can't be made until someone changes something.
        """
        runtime = environment.runtime_of(manifest)
        if runtime is not None:
            return runtime
        place = environment.environment_directory(manifest)
        with self._lock:
            process = self._making.get(place)
            if process is None:
                process = self._making[place] = self._begin(manifest)
        if not process.ended.wait(deadline.left_s):
            raise TransientError(
                f"the environment of plugin {manifest.name} is still being made; try again when it is done"
            )
        with self._lock:
            if self._making.get(place) is process:
                del self._making[place]
        runtime = environment.runtime_of(manifest)
        if runtime is not None:
            return runtime
        raise _failure(manifest, process)

    def _begin(self, manifest: Manifest) -> SidecarProcess:
        def on_line(process: SidecarProcess, line: str) -> None:
            self._hub.publish(SidecarEvent(connector=manifest.name, instance_id="", pid=process.pid, line=line))

        def on_exit(process: SidecarProcess, outcome: Exit) -> None:
            del process, outcome  # whoever waits looks at it

        # -P: the plugin's folder is the working directory, and its modules must not hide the engine's.
        argv = (sys.executable, "-P", "-m", _MODULE, str(manifest.directory))
        path = os.pathsep.join(entry for entry in sys.path if entry)
        command = Command(argv=argv, environment={**os.environ, "PYTHONPATH": path}, directory=manifest.directory)
        return self._loop.start(command, on_line=on_line, on_exit=on_exit)


def _failure(manifest: Manifest, process: SidecarProcess) -> ConfigError | TransientError:
    assert process.exit is not None
    if process.exit.code == environment.EXIT_CONFIG:
        return ConfigError("\n".join(process.tail()))
    if process.exit.code == environment.EXIT_TRANSIENT:
        return TransientError("\n".join(process.tail()))
    what = f"making the environment of plugin {manifest.name} {process.exit.message}"
    return TransientError(with_tail(what, process.tail()))
