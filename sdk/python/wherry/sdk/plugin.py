"""What sources and sinks have in common: configuration, context, logging, metrics, life."""

from __future__ import annotations

import threading
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from wherry.connector.v1 import plugin_pb2
from wherry.contract.config import ConfigDef
from wherry.contract.description import Capabilities, ClassDescription, Role
from wherry.contract.errors import ConnectorBugError, WherryError
from wherry.contract.position import compact_json
from wherry.sdk._events import Events, Logger
from wherry.sdk.config import Config

ConfigT = TypeVar("ConfigT", bound=Config)
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Findings:
    """What `validate` found about one key.

    Attributes:
        errors: What is wrong, one sentence each.
        recommended: Values to offer.
        visible: Whether a form should show the key.
    """

    errors: Sequence[str] = ()
    recommended: Sequence[str] = ()
    visible: bool = True


class Context:
    """The connector that the process is bound to, and the way to talk to the engine.

    Attributes:
        connector: Name of the connector.
        generation: Rises whenever the connector's work is handed out anew.
    """

    def __init__(self, connector: str, generation: int, events: Events | None = None) -> None:
        self.connector = connector
        self.generation = generation
        self.events = events or Events()
        self.plan_changes = PlanChanges()

    def plan_changed(self, reason: str = "") -> None:
        """Asks the engine to plan again: `plan` would answer differently now."""
        self.plan_changes.tell(reason)
        if self.events.subscribed:
            self.events.put(plan_changed=plugin_pb2.PlanChanged(reason=reason))

    def fail(self, error: WherryError | str) -> None:
        """Tells that the connector as a whole has failed; the engine acts on the error's class."""
        if isinstance(error, str):
            error = ConnectorBugError(error)
        self.events.put(
            failed=plugin_pb2.ConnectorFailed(error_class=int(error.error_class), message=str(error))  # type: ignore[arg-type]
        )

    def rate_limited(self, until_ms: int, message: str) -> None:
        """Tells that the other system asks for less, until a time in ms since the epoch (0 if unknown)."""
        self.events.put(rate_limited=plugin_pb2.RateLimited(until_ms=until_ms, message=message))

    def update_config(self, values: Mapping[str, str]) -> None:
        """Has values kept in the connector's configuration, such as a rotated token."""
        self.events.put(config_update=plugin_pb2.ConfigUpdate(values=values))


class PlanChanges:
    """Counts changes of the plan, for those who wait for the next."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._reason = ""

    def tell(self, reason: str) -> None:
        """Notes a change."""
        with self._condition:
            self._count += 1
            self._reason = reason
            self._condition.notify_all()

    def wait(self, seen: int, timeout_s: float) -> tuple[int, str]:
        """Waits for a change after the `seen`-th; returns the count then and the last reason."""
        with self._condition:
            self._condition.wait_for(lambda: self._count > seen, timeout_s)
            return self._count, self._reason


class Plugin(Generic[ConfigT]):
    """Base of `Source` and `Sink`.

    One object plans and watches; every stream has one of its own, so that attributes are never shared by threads.

    Attributes:
        class_name: Full class name; required.
        aliases: Other names it answers to.
        version: Version shown to users; empty means the plugin's.
        config_type: The configuration's class, taken from `Source[…]` or `Sink[…]`.
        partition_schema: JSON Schema of a partition map; None accepts any object.
        offset_schema: JSON Schema of an offset map; None accepts any object.
        config: The configuration.
        context: The connector.
        log: Logger whose records reach the engine.
    """

    role: ClassVar[Role]
    class_name: ClassVar[str] = ""
    aliases: ClassVar[Sequence[str]] = ()
    version: ClassVar[str] = ""
    config_type: ClassVar[type[Config]] = Config
    partition_schema: ClassVar[Json | None] = None
    offset_schema: ClassVar[Json | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in typing.get_args(base):
                if isinstance(argument, type) and issubclass(argument, Config):
                    cls.config_type = argument

    def __init__(self, config: ConfigT, context: Context) -> None:
        self.config = config
        self.context = context
        self.log = Logger(context.events, self.class_name or type(self).__name__)
        self._stopping = threading.Event()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.context.connector}>"

    @property
    def stopping(self) -> bool:
        """Whether the work is to end; loops look here."""
        return self._stopping.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps, but not beyond the end of the work; returns whether the work is to end."""
        return self._stopping.wait(seconds)

    def metric(self, name: str, value: float, *, counter: bool = False, unit: str = "1", **attributes: Any) -> None:
        """Reports a measurement; dropped while nobody listens.

        Args:
            name: Lower case with dots.
            value: Of a gauge, or what to add to a counter.
            counter: Whether the value adds up.
            unit: As in UCUM: ms, By, 1.
            attributes: What it is measured of.
        """
        if self.context.events.subscribed:
            texts = {key: str(item) for key, item in attributes.items()}
            self.context.events.put(
                metric=plugin_pb2.MetricEvent(name=name, value=value, counter=counter, unit=unit, attributes=texts)
            )

    def stop(self) -> None:
        """Called once from another thread when the work is to end, so that a blocking call can be broken off."""

    def on_delete(self) -> None:
        """The connector was deleted: release what it holds in the other system."""

    def probe(self) -> str:
        """Tells whether the other system can be reached now, by raising if not; returns one sentence or nothing."""
        return ""

    @classmethod
    def validate(cls, config: ConfigT, connect: bool) -> Mapping[str, str | Sequence[str] | Findings]:
        """Checks what single keys can't: called when all keys are fine by themselves.

        Args:
            config: The configuration.
            connect: Whether the other system may be contacted.

        Returns:
            Findings by key: one or more sentences that say what is wrong, or `Findings`.
        """
        return {}

    @classmethod
    def alter_offsets(cls, config: ConfigT, offsets: Sequence[tuple[Json, Json | None]], validate_only: bool) -> bool:
        """Checks and carries out an operator's change of offsets, pairs of partition and offset (None resets it).

        Returns:
            Whether the plugin took care of everything.

        Raises:
            ConfigError: The change isn't allowed; the sentence says why.
        """
        return False

    @classmethod
    def definition(cls) -> ConfigDef:
        """Returns the configuration's keys."""
        return cls.config_type.definition

    @classmethod
    def capabilities(cls) -> Capabilities:
        """Returns what the class can do."""
        return Capabilities()

    @classmethod
    def overrides(cls, name: str, base: type) -> bool:
        """Tells whether the author has replaced a method of a base class."""
        own, theirs = getattr(cls, name), getattr(base, name)
        return getattr(own, "__func__", own) is not getattr(theirs, "__func__", theirs)

    @classmethod
    def describe(cls) -> ClassDescription:
        """Returns the description of the class."""
        return ClassDescription(
            class_name=cls.class_name or f"{cls.__module__}.{cls.__qualname__}",
            role=cls.role,
            config=cls.definition(),
            aliases=tuple(cls.aliases),
            version=cls.version,
            partition_schema_json=compact_json(cls.partition_schema) if cls.partition_schema else "",
            offset_schema_json=compact_json(cls.offset_schema) if cls.offset_schema else "",
            source_class=getattr(cls, "source_class", None),
            sink_class=getattr(cls, "sink_class", None),
            capabilities=cls.capabilities(),
            documentation=" ".join((cls.__doc__ or "").split()),
        )

    def end(self) -> None:
        """Tells the work to end; called by the SDK."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.stop()
