"""What a plugin offers: its classes, what they can do, and their configuration."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from wherry.contract.config import ConfigDef


class Role(enum.IntEnum):
    """What a class of a plugin is."""

    SOURCE = 1
    SINK = 2
    TRANSFORM = 3


class SinkClass(enum.IntEnum):
    """What a sink does with positions and repeated rows; decides which guarantee a pipeline can give."""

    APPEND = 1
    IDEMPOTENT = 2
    TWO_PHASE = 3
    TRANSACTIONAL = 4


class SourceClass(enum.IntEnum):
    """Whether a source can read the same rows again."""

    REPLAYABLE = 1
    LEASED = 2


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Optional abilities of a class.

    Attributes:
        splits: Plan answers with bounded splits.
        watch: Serves Source.Watch.
        parkable: An idle task may be parked: nothing arrives that only a running stream would see.
        alter_offsets: Alters offsets it keeps outside, or checks them.
        typed: A sink that wants records with a schema: the engine parses JSON into the schema of EnsureTarget.
        raw: A sink that takes key, value and header bytes untouched and converts by itself; rules out `typed`.
        transaction_boundaries: Sources that group rows into transactions by marks.
        deletes: Sinks that delete the row of a key on a null value.
    """

    splits: bool = False
    watch: bool = False
    parkable: bool = False
    alter_offsets: bool = False
    typed: bool = False
    raw: bool = False
    transaction_boundaries: bool = False
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class ClassDescription:
    """One class of a plugin, as named by `connector.class`.

    Attributes:
        class_name: Full class name; for known connectors Kafka Connect's.
        role: What it is.
        config: Its configuration.
        aliases: Other names it answers to.
        version: Version shown to users; empty means the plugin's.
        partition_schema_json: JSON Schema of a partition map; empty accepts any object.
        offset_schema_json: JSON Schema of an offset map; empty accepts any object.
        source_class: Whether it can read the same rows again; None for others than sources.
        sink_class: What it does with repeated rows; None for others than sinks.
        capabilities: What it can do.
        documentation: One paragraph for people.
    """

    class_name: str
    role: Role
    config: ConfigDef
    aliases: tuple[str, ...] = ()
    version: str = ""
    partition_schema_json: str = ""
    offset_schema_json: str = ""
    source_class: SourceClass | None = None
    sink_class: SinkClass | None = None
    capabilities: Capabilities = Capabilities()
    documentation: str = ""
