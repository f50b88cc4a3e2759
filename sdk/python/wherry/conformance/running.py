"""One case on one class: what its steps share."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wherry.conformance.applying import Answer, Applying
from wherry.conformance.failure import UsageError
from wherry.conformance.rows import Row
from wherry.conformance.session import Session
from wherry.conformance.streams import Reading, Writing
from wherry.conformance.subject import ClassSubject, Variables
from wherry.connector.v1 import common_pb2, plugin_pb2

if TYPE_CHECKING:
    from wherry.contract.manifest import Manifest

_Stream = TypeVar("_Stream", Reading, Writing, Applying)


@dataclass(slots=True)
class Pass:
    """Rows of a source and the positions they lead to.

    Attributes:
        rows: The rows.
        positions: Where each partition stands after them, as compact JSON.
    """

    rows: list[Row] = field(default_factory=list)
    positions: dict[str, str] = field(default_factory=dict)

    def stored(self) -> list[common_pb2.Position]:
        """Returns the positions as the engine would give them back."""
        return [
            common_pb2.Position(partition_json=partition, offset_json=offset)
            for partition, offset in self.positions.items()
        ]

    def move(self, positions: dict[str, str | None]) -> None:
        """Takes in positions; one without an offset is forgotten."""
        for partition, offset in positions.items():
            if offset is None:
                self.positions.pop(partition, None)
            else:
                self.positions[partition] = offset


class Running:
    """A case while it runs.

    Attributes:
        session: The sidecar.
        subject: How the class is tested; None for a case about the plugin as a whole.
        class_name: The class; empty for a case about the plugin as a whole.
        manifest: The plugin's manifest; None when a command line was given.
        generation: Generation of the case.
        variables: Variables of the case.
        passes: Results of reading, by name.
        answers: The last answers of a transformation, by the name of the stream.
    """

    def __init__(
        self, session: Session, class_name: str, subject: ClassSubject | None, manifest: Manifest | None
    ) -> None:
        self.session = session
        self.class_name = class_name
        self.manifest = manifest
        self.generation = session.next_generation()
        self.unique = uuid.uuid4().hex[:8]
        self.scratch = Path(tempfile.mkdtemp(prefix="wherry-case-"))
        self.variables = Variables(
            {"scratch": str(self.scratch), "unique": self.unique, "class": class_name, "generation": self.generation}
        )
        self.passes: dict[str, Pass] = {}
        self._subject = subject
        self.answers: dict[str, list[Answer]] = {}
        self._streams: dict[str, Reading | Writing | Applying] = {}

    @property
    def subject(self) -> ClassSubject:
        """How the class is tested."""
        if self._subject is None:
            raise UsageError("A case about the plugin as a whole has no class.")
        return self._subject

    @property
    def description(self) -> plugin_pb2.ClassDescription:
        """What Describe says of the class."""
        return self.session.describe(self.class_name)

    @property
    def connector(self) -> str:
        """Name of the connector."""
        return f"conformance-{self.unique}"

    def call(self, name: str, request: Any, within_s: float = 30.0) -> Any:
        """Makes a unary call."""
        return self.session.wire.call(name, request, within_s)

    def config(self, changes: dict[str, str | None] | None = None) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the class's configuration and its secrets, as Configure takes them.

        Args:
            changes: Values put in place of the subject's; None takes one away.
        """
        values: dict[str, str | None] = {
            "name": self.connector,
            "connector.class": self.class_name,
            "tasks.max": "1",
            **self.variables.fill(self.subject.config),
            **(changes or {}),
        }
        secret = {key.name for key in self.description.config if key.type == plugin_pb2.CONFIG_TYPE_PASSWORD}
        given = {name: str(value) for name, value in values.items() if value is not None}
        return (
            {name: value for name, value in given.items() if name not in secret},
            {name: value for name, value in given.items() if name in secret},
        )

    def keep(self, name: str, stream: _Stream) -> _Stream:
        """Gives a stream a name; one that had it before is broken off."""
        if name in self._streams:
            self._streams[name].cancel()
        self._streams[name] = stream
        return stream

    def reading(self, name: str) -> Reading:
        """Returns a Read stream by its name."""
        stream = self._streams.get(name)
        if not isinstance(stream, Reading):
            raise UsageError(f"No Read stream has the name {name}.")
        return stream

    def writing(self, name: str) -> Writing:
        """Returns a Write stream by its name."""
        stream = self._streams.get(name)
        if not isinstance(stream, Writing):
            raise UsageError(f"No Write stream has the name {name}.")
        return stream

    def applying(self, name: str) -> Applying:
        """Returns an Apply stream by its name."""
        stream = self._streams.get(name)
        if not isinstance(stream, Applying):
            raise UsageError(f"No Apply stream has the name {name}.")
        return stream

    def stream(self, name: str) -> Reading | Writing | Applying:
        """Returns a stream by its name."""
        if name not in self._streams:
            raise UsageError(f"No stream has the name {name}.")
        return self._streams[name]

    def result(self, name: str | None) -> Pass:
        """Returns a result of reading by its name; an empty one for None."""
        if name is None:
            return Pass()
        if name not in self.passes:
            raise UsageError(f"No reading has the name {name}.")
        return self.passes[name]

    def forget_streams(self) -> None:
        """Breaks all streams off."""
        for stream in self._streams.values():
            stream.cancel()
        self._streams.clear()

    def close(self) -> None:
        """Lets go of everything the case holds."""
        self.forget_streams()
        shutil.rmtree(self.scratch, ignore_errors=True)
