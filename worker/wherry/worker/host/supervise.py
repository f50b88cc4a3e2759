"""Keeps one sidecar per connector, generation and class for as long as somebody uses it.

Decides when a sidecar is started, started again, given up and stopped. Starting one never waits for another's start:
each has a lock of its own, held for moments only. Invariants: at most one process per key; a generation below one
already served is fenced; a sidecar that nobody holds, or whose last holder has died, does not stay.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
import uuid
from pathlib import Path
from typing import Final

from wherry.contract.errors import STOPPED, ConnectorBugError, FencedError, ThrottledError, TransientError, WherryError
from wherry.contract.manifest import Manifest
from wherry.control.v1 import host_pb2, lease_pb2
from wherry.worker.host import bootstrap, ending
from wherry.worker.host.bootstrap import Deadline, Instance
from wherry.worker.host.entry import PLANNING, Entry, Key, State
from wherry.worker.host.logs import EventHub, SidecarEvent
from wherry.worker.host.makers import EnvironmentMaker
from wherry.worker.host.parents import WarmParents
from wherry.worker.host.process import Exit, ProcessLoop, SidecarProcess

SIDECARS_MAX: Final = 512
HOLDERS_MAX: Final = 1024
HOUSEKEEPING_S: Final = 0.5

STOP_DEADLINE_S: Final = 5.0
# What is left of a stop's time after the Stop call: SIGTERM, then SIGKILL.
TERM_GRACE_S: Final = 1.5
# When the host itself ends, the coordinator gives it two seconds in all.
SHUTDOWN_DEADLINE_S: Final = 1.2
SHUTDOWN_TERM_GRACE_S: Final = 0.4


class Supervisor:
    """The sidecars of this machine. Every method may be called from any thread."""

    def __init__(self, loop: ProcessLoop, directory: Path, hub: EventHub) -> None:
        self._loop = loop
        self._directory = directory
        self._hub = hub
        self._makers = EnvironmentMaker(loop, hub)
        self._parents = WarmParents(loop, hub)
        self._lock = threading.Lock()
        self._entries: dict[Key, Entry] = {}
        self._generations: dict[str, int] = {}
        self._closing = threading.Event()
        self._housekeeper = threading.Thread(target=self._keep_house, name="sidecar-housekeeper", daemon=True)
        self._housekeeper.start()

    def acquire(self, spec: lease_pb2.SidecarSpec, *, holder: str, holder_pid: int, timeout_s: float) -> Instance:
        """Return the configured sidecar of a connector, starting it if need be.

        Raises:
            FencedError: A newer generation of the connector has been here.
            WherryError: It can't be started or configured; the class says what is to be done.
        """
        self._check_generation(spec.connector, spec.generation)
        key = Key(spec.connector, spec.generation, spec.class_name, spec.plugin_directory, spec.alias)
        what = f"sidecar {spec.plugin} of connector {spec.connector}"
        return self._acquire(key, what, holder, holder_pid, timeout_s, spec)

    def acquire_plugin(
        self, plugin: str, directory: str, *, holder: str, timeout_s: float, planning: bool = False
    ) -> Instance:
        """Return a sidecar that is not configured: to be asked for its description, or to plan for several connectors.

        Raises:
            WherryError: It can't be started.
        """
        key = Key("", 0, PLANNING if planning else "", directory)
        return self._acquire(key, f"plugin {plugin}", holder, 0, timeout_s, None)

    def release(self, instance_id: str, holder: str) -> None:
        """Note that a user has done. Harmless when it is unknown."""
        for entry in self._all():
            with entry.changed:
                mine = instance_id in entry.instance_ids or not instance_id
            if mine:
                self._drop_holder(entry, holder)

    def stop_connector(self, connector: str, *, below_generation: int, deadline_s: float) -> int:
        """Stop a connector's sidecars below a generation, 0 meaning all; return how many there were."""
        with self._lock:
            if below_generation:
                self._generations[connector] = max(self._generations.get(connector, 0), below_generation)
            else:
                self._generations.pop(connector, None)
        chosen = [
            entry
            for entry in self._all()
            if entry.key.connector == connector and (not below_generation or entry.key.generation < below_generation)
        ]
        return self._stop_all(chosen, deadline_s)

    def statuses(self) -> list[host_pb2.SidecarStatus]:
        """Return what runs."""
        found = []
        for entry in self._all():
            with entry.changed:
                instance, process = entry.instance, entry.process
                holders, starts = sorted(entry.holders), entry.starts
            if instance is None:
                continue
            usage = process.usage() if process else None
            found.append(
                host_pb2.SidecarStatus(
                    plugin=Path(entry.key.directory).name,
                    connector=entry.key.connector,
                    generation=entry.key.generation,
                    instance_id=instance.instance_id,
                    pid=instance.pid,
                    endpoint=instance.endpoint,
                    rss_bytes=usage.rss_bytes if usage else 0,
                    cpu_ms=usage.cpu_ms if usage else 0,
                    restarts=max(0, starts - 1),
                    holders=holders,
                )
            )
        return found

    def close(self, deadline_s: float = SHUTDOWN_DEADLINE_S) -> None:
        """Stop every sidecar."""
        self._closing.set()
        self._stop_all(self._all(), deadline_s, SHUTDOWN_TERM_GRACE_S)
        self._parents.close()
        self._housekeeper.join(HOUSEKEEPING_S * 2)

    # Acquiring.

    def _acquire(
        self, key: Key, what: str, holder: str, holder_pid: int, timeout_s: float, spec: lease_pb2.SidecarSpec | None
    ) -> Instance:
        deadline = Deadline.after(timeout_s)
        digest = _digest(spec) if spec else ""
        while True:
            entry = self._entry(key)
            returns = self._add_holder(entry, holder, holder_pid)
            try:
                instance = self._take(entry, what, deadline)
                if instance is not None and not self._is_usable(instance, returns):
                    continue
                if instance is None and entry.gone:
                    continue
                if instance is None:
                    instance = self._start(entry, what, deadline)
                # Nobody tells us when an attached or remote one has been started anew, so it is always told.
                if spec is not None and (entry.config_digest != digest or instance.process is None):
                    self._configure(entry, instance, spec, digest, deadline)
                return instance
            except BaseException:
                self._drop_holder(entry, holder)
                raise

    def _take(self, entry: Entry, what: str, deadline: Deadline) -> Instance | None:
        """Return the running sidecar; None when the caller is to start it, or to look the entry up again."""
        with entry.changed:
            while True:
                if entry.gone:
                    return None
                if entry.state is State.READY and entry.instance is not None:
                    return entry.instance
                if entry.state is State.DOWN:
                    pause_s = entry.crashes.pause_s(entry.name, time.monotonic())
                    if pause_s <= 0:
                        entry.state = State.STARTING
                        entry.config_digest = ""
                        return None
                    entry.changed.wait(min(pause_s, deadline.left_s))
                else:
                    entry.changed.wait(deadline.left_s)
                if deadline.is_over and entry.state is not State.READY:
                    raise TransientError(
                        f"{what} is still {entry.state.name.lower()}; asked again later, it may be ready"
                    )

    def _is_usable(self, instance: Instance, returns: bool) -> bool:
        """Look after a sidecar before it is given away: our news of its death may be late.

        One that a user comes back to has to answer, too: its stream broke.
        """
        answers = bootstrap.answers(instance) if returns else bootstrap.is_served(instance)
        process = instance.process
        if answers or process is None:
            return True
        if answers is None:
            process.signal(signal.SIGKILL, f"it no longer answered within {bootstrap.ANSWER_TIMEOUT_S:g} s")
        return not process.ended.wait(ending.KILL_WAIT_S)

    def _start(self, entry: Entry, what: str, deadline: Deadline) -> Instance:
        try:
            instance = self._launch(entry, what, deadline)
        except BaseException:
            with entry.changed:
                if entry.state is State.STARTING:
                    entry.state = State.DOWN
                entry.changed.notify_all()
            raise
        with entry.changed:
            stopped = entry.state is not State.STARTING
            dead = instance.process is not None and not instance.process.is_running
            if not stopped:
                entry.instance = None if dead else instance
                entry.state = State.DOWN if dead else State.READY
                entry.starts += 1
            entry.changed.notify_all()
        if stopped:
            ending.end(instance, TERM_GRACE_S)
            raise TransientError(f"{what} was stopped while it was starting", reason=STOPPED)
        if dead:
            instance.channel.close()
            bootstrap.require_alive(instance.process, f"{what} had just been started and")
            raise ConnectorBugError(f"{what} ended as soon as it had started")
        if instance.attached_pid:
            self._loop.watch(instance.attached_pid, lambda: self._on_detached(entry, instance))
        return instance

    def _launch(self, entry: Entry, what: str, deadline: Deadline) -> Instance:
        manifest = Manifest.load(entry.key.directory)
        instance_id = uuid.uuid4().hex
        with entry.changed:
            entry.instance_ids.append(instance_id)
        if manifest.run is None:
            return bootstrap.attach(manifest, self._directory, what=what, instance_id=instance_id, deadline=deadline)
        name = entry.key.connector or manifest.name

        def on_started(process: SidecarProcess) -> None:
            with entry.changed:
                # Its end may have been told before its start.
                entry.process = process if process.is_running else None

        def on_line(process: SidecarProcess, line: str) -> None:
            self._hub.publish(SidecarEvent(connector=name, instance_id=instance_id, pid=process.pid, line=line))

        def on_exit(process: SidecarProcess, outcome: Exit) -> None:
            self._on_exit(entry, process, outcome)
            self._hub.publish(
                SidecarEvent(
                    connector=name,
                    instance_id=instance_id,
                    pid=process.pid,
                    code=outcome.code,
                    message=outcome.message,
                    expected=process.told_to_end,
                )
            )

        return bootstrap.launch(
            self._parents.starter(manifest),
            manifest,
            self._makers.ensure(manifest, deadline),
            self._directory,
            what=what,
            instance_id=instance_id,
            deadline=deadline,
            on_line=on_line,
            on_exit=on_exit,
            on_started=on_started,
        )

    def _configure(
        self, entry: Entry, instance: Instance, spec: lease_pb2.SidecarSpec, digest: str, deadline: Deadline
    ) -> None:
        try:
            bootstrap.configure(instance, spec, deadline)
        except WherryError:
            # A sidecar that refused its configuration is of no use to anybody; the next one gets a fresh process.
            self._stop_later(entry, TERM_GRACE_S)
            raise
        with entry.changed:
            if entry.instance is instance:
                entry.config_digest = digest

    def _check_generation(self, connector: str, generation: int) -> None:
        with self._lock:
            newest = self._generations.get(connector, 0)
            if generation < newest:
                raise FencedError(
                    f"generation {generation} of connector {connector} is over; generation {newest} has taken over"
                )
            self._generations[connector] = generation

    # The table and its holders.

    def _entry(self, key: Key) -> Entry:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                if self._closing.is_set():
                    raise TransientError("the sidecar host is being stopped")
                if len(self._entries) >= SIDECARS_MAX:
                    raise ThrottledError(f"{SIDECARS_MAX} sidecars run on this machine already, which is the most")
                entry = self._entries[key] = Entry(key, born_s=time.monotonic())
            return entry

    def _all(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())

    def _remove(self, entry: Entry) -> None:
        with self._lock:
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]

    def _add_holder(self, entry: Entry, holder: str, pid: int) -> bool:
        """Note a user; tell whether it was one already."""
        with entry.changed:
            if entry.gone or holder in entry.holders:
                return not entry.gone
            if len(entry.holders) >= HOLDERS_MAX:
                raise ThrottledError(f"{HOLDERS_MAX} users of one sidecar are the most")
            entry.holders[holder] = lambda: None
        if not pid:
            return False
        # Outside the lock: a process that has died already is told at once, and its holder dropped.
        cancel = self._loop.watch(pid, lambda: self._drop_holder(entry, holder))
        with entry.changed:
            if holder in entry.holders:
                entry.holders[holder] = cancel
                return False
        cancel()
        return False

    def _drop_holder(self, entry: Entry, holder: str) -> None:
        with entry.changed:
            cancel = entry.holders.pop(holder, None)
            if not entry.holders:
                entry.free_since_s = time.monotonic()
        if cancel is not None:
            cancel()

    # Ends.

    def _on_exit(self, entry: Entry, process: SidecarProcess, outcome: Exit) -> None:
        """Called by the process loop when a process of this entry has ended. Must not wait."""
        instance = None
        with entry.changed:
            if not process.told_to_end:
                entry.crashes.note(outcome.message, time.monotonic())
            if entry.process is process:
                instance, entry.instance, entry.process = entry.instance, None, None
                if entry.state is State.READY:
                    entry.state = State.DOWN
            entry.changed.notify_all()
        if instance is not None:
            ending.tidy(instance)

    def _on_detached(self, entry: Entry, instance: Instance) -> None:
        """Called by the process loop when an attached sidecar has ended."""
        with entry.changed:
            if entry.instance is not instance:
                return
            entry.instance = None
            if entry.state is State.READY:
                entry.state = State.DOWN
            entry.changed.notify_all()
        ending.tidy(instance)

    def _stop_later(self, entry: Entry, deadline_s: float) -> None:
        """Stop a sidecar without waiting for it."""
        threading.Thread(target=self._stop, args=(entry, deadline_s), daemon=True).start()

    def _stop_all(self, entries: list[Entry], deadline_s: float, grace_s: float = TERM_GRACE_S) -> int:
        """Stop sidecars at the same time and wait for all; return how many there were."""
        stoppers = [
            threading.Thread(target=self._stop, args=(entry, deadline_s, grace_s), daemon=True) for entry in entries
        ]
        for stopper in stoppers:
            stopper.start()
        deadline = Deadline.after(deadline_s + grace_s)
        for stopper in stoppers:
            stopper.join(deadline.left_s)
        return len(stoppers)

    def _stop(self, entry: Entry, deadline_s: float, grace_s: float = TERM_GRACE_S) -> None:
        with entry.changed:
            if entry.gone or entry.state is State.STOPPING:
                return
            entry.state = State.STOPPING
            instance, process = entry.instance, entry.process
        try:
            if process is not None:
                process.told_to_end = True
            # An attached or remote one is not ours to stop: its streams end with its users.
            if instance is not None and instance.process is not None:
                ending.ask_to_stop(instance, max(deadline_s - grace_s, 0.1))
            if process is not None:
                ending.end_process(process, grace_s)
            if instance is not None:
                ending.tidy(instance)
        finally:
            self._remove(entry)
            with entry.changed:
                entry.state, entry.gone = State.DOWN, True
                entry.instance = entry.process = None
                cancels = list(entry.holders.values())
                entry.holders.clear()
                entry.changed.notify_all()
            for cancel in cancels:
                cancel()

    def _keep_house(self) -> None:
        while not self._closing.wait(HOUSEKEEPING_S):
            now = time.monotonic()
            self._parents.sweep()
            for entry in self._all():
                with entry.changed:
                    over = entry.is_over(now)
                if over:
                    self._stop_later(entry, STOP_DEADLINE_S)


def _digest(spec: lease_pb2.SidecarSpec) -> str:
    digest = hashlib.sha256()
    for values in (spec.config, spec.secrets):
        for name in sorted(values):
            digest.update(f"{name}\0{values[name]}\0".encode())
        digest.update(b"\1")
    return digest.hexdigest()
