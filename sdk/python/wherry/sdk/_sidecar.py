"""What a sidecar process is: the classes of its plugin, what it is bound to, and the streams it has."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from wherry.connector.v1 import plugin_pb2
from wherry.contract import from_proto
from wherry.contract.description import Role
from wherry.contract.errors import ConfigError, ConnectorBugError, FencedError, ThrottledError
from wherry.contract.frame import Encoding
from wherry.contract.limits import Limits
from wherry.contract.shared import CONNECTORS_MAX
from wherry.sdk._applying import Applying
from wherry.sdk._events import Events
from wherry.sdk._reading import Reading
from wherry.sdk._writing import Writing
from wherry.sdk.plugin import Context, Plugin

Stream = Reading | Writing | Applying
_STREAMS_POLL_S: Final = 0.01
ABOUT: ContextVar[str] = ContextVar("connector of the call", default="")
"""In a process that plans for several connectors, which one the unary call under way is about; else ""."""


@dataclass(slots=True)
class Bound:
    """What Configure has bound the process to."""

    request: plugin_pb2.ConfigureRequest
    plugin: type[Plugin[Any]]
    config: Any
    context: Context
    main: Plugin[Any]


class Sidecar:
    """The classes of a plugin, and what the process is bound to."""

    def __init__(
        self,
        classes: Sequence[type[Plugin[Any]]],
        *,
        name: str,
        version: str,
        instance_id: str = "",
        limits: Limits | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.name = name
        self.version = version
        self.instance_id = instance_id
        self.limits = limits or Limits()
        self.events = Events()
        self.lock = threading.Lock()
        self.bound: Bound | None = None
        self.shared: dict[str, Bound] = {}
        """Of a process that plans for several connectors, what it is bound to by connector; it has no streams then."""
        self.streams: set[Stream] = set()
        self.stopping = False

    def find(self, class_name: str) -> type[Plugin[Any]]:
        """Returns the class of a name or alias.

        Raises:
            ConfigError: The plugin has no such class.
        """
        for plugin in self.classes:
            described = plugin.describe()
            if class_name in (described.class_name, *described.aliases):
                return plugin
        known = ", ".join(plugin.describe().class_name for plugin in self.classes)
        raise ConfigError(f"The plugin {self.name} has no class {class_name}; it has {known}.", key="connector.class")

    @property
    def here(self) -> Bound | None:
        """What the call under way is about."""
        connector = ABOUT.get()
        return self.shared.get(connector) if connector else self.bound

    def bind(self, bound: Bound) -> None:
        """Binds the process, or its part for a connector; the caller holds the lock.

        Raises:
            ThrottledError: It plans for too many already.
        """
        connector = ABOUT.get()
        if not connector:
            self.bound = bound
            return
        if connector not in self.shared and len(self.shared) >= CONNECTORS_MAX:
            raise ThrottledError(f"The process plans for {CONNECTORS_MAX} connectors already, which is the most.")
        self.shared[connector] = bound

    def configured(self, role: Role, generation: int | None = None) -> Bound:
        """Returns what the process is bound to.

        Raises:
            ConnectorBugError: It isn't bound yet, or to a class of another role.
            FencedError: It is bound to another generation.
        """
        bound = self.here
        if bound is None:
            raise ConnectorBugError("The sidecar isn't configured yet; Configure comes first.", reason="NOT_CONFIGURED")
        if bound.plugin.role is not role:
            raise ConnectorBugError(
                f"{bound.request.class_name} is a {bound.plugin.role.name.lower()}, not a {role.name.lower()}."
            )
        if generation is not None and generation != bound.context.generation:
            raise FencedError(
                f"The stream is of generation {generation}; the sidecar is bound to {bound.context.generation}."
            )
        return bound

    def end_streams(self, deadline_s: float) -> None:
        """Ends all streams in good order."""
        with self.lock:
            streams = list(self.streams)
        for stream in streams:
            if isinstance(stream, Reading):
                stream.drain(deadline_s)
            else:
                stream.end()

    def wait_for_streams(self, deadline_s: float) -> None:
        """Waits until all streams have ended, or the deadline passes."""
        end = time.monotonic() + deadline_s
        while self.streams and time.monotonic() < end:
            time.sleep(_STREAMS_POLL_S)

    def negotiate(self, offered: Sequence[int]) -> Encoding:
        """Returns the first encoding of the engine's that this side knows.

        Raises:
            ConnectorBugError: There is none.
        """
        for number in offered:
            known = from_proto.known(Encoding, number, None)
            if known is not None:
                return known
        raise ConnectorBugError(f"The engine offers the encodings {list(offered)}; ARROW_IPC is 1.", reason="PROTOCOL")
