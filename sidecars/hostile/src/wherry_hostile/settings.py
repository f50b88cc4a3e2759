"""Configuration of both classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, Importance, OneOfValidator, RangeValidator
from wherry.contract.description import Capabilities, ClassDescription, Role, SinkClass, SourceClass
from wherry.contract.errors import ConfigError, ErrorClass
from wherry_hostile.modes import Wishes, checked

SOURCE_CLASS: Final = "wherry.hostile.HostileSource"
SINK_CLASS: Final = "wherry.hostile.HostileSink"
BIG_BYTES_MAX: Final = 512 * 1024 * 1024

_LEAST_0: Final = (RangeValidator(0, None),)
_COMMON: Final = (
    ConfigKey("misbehave", ConfigType.LIST, "", documentation="What to do wrong: names of modes."),
    ConfigKey("after.rows", ConfigType.LONG, "0", validators=_LEAST_0, documentation="Rows before it begins."),
    ConfigKey("delay.ms", ConfigType.INT, "1000", validators=_LEAST_0, documentation="Delay of the slow modes."),
    ConfigKey(
        "error.class",
        ConfigType.STRING,
        "TRANSIENT",
        validators=(OneOfValidator(tuple(known.name for known in ErrorClass)),),
        documentation="Class of the errors.",
    ),
    ConfigKey("leak.mib", ConfigType.INT, "50", validators=_LEAST_0, documentation="MiB that leak each second."),
    ConfigKey(
        "big.bytes",
        ConfigType.INT,
        str(20 * 1024 * 1024),
        validators=(RangeValidator(0, BIG_BYTES_MAX),),
        documentation="Size of a big row.",
    ),
)
_SOURCE: Final = ConfigDef(
    (
        ConfigKey("topic", required=True, importance=Importance.HIGH, documentation="Topic of the rows."),
        ConfigKey("count", ConfigType.LONG, "100", validators=_LEAST_0, documentation="Rows; 0 means no end."),
        *_COMMON,
    )
)
_SINK: Final = ConfigDef(
    (ConfigKey("file", default_value="", documentation="File that gets a line for each row; empty for none."), *_COMMON)
)

CLASSES: Final = (
    ClassDescription(
        SOURCE_CLASS,
        Role.SOURCE,
        _SOURCE,
        aliases=("HostileSource",),
        source_class=SourceClass.REPLAYABLE,
        capabilities=Capabilities(parkable=True),
        documentation="Counts, and misbehaves on request.",
    ),
    ClassDescription(
        SINK_CLASS,
        Role.SINK,
        _SINK,
        aliases=("HostileSink",),
        sink_class=SinkClass.APPEND,
        documentation="Writes lines, and misbehaves on request.",
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """A parsed configuration.

    Attributes:
        role: Role of the class.
        wishes: What is asked for.
        topic: Source: the topic.
        count: Source: number of rows; 0 means no end.
        file: Sink: the file; empty for none.
    """

    role: Role
    wishes: Wishes
    topic: str = ""
    count: int = 0
    file: str = ""


def description_of(class_name: str) -> ClassDescription:
    """Returns the description of a class by its name or alias.

    Raises:
        ConfigError: There is no such class.
    """
    for known in CLASSES:
        if class_name in (known.class_name, *known.aliases):
            return known
    raise ConfigError(f"hostile has no class {class_name}; it has {SOURCE_CLASS} and {SINK_CLASS}.")


def validate(class_name: str, values: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns what is wrong with a configuration, by key."""
    found = {key: errors for key, errors in description_of(class_name).config.validate(values).items() if errors}
    try:
        checked(values.get("misbehave", "").split(","))
    except ConfigError as error:
        found.setdefault("misbehave", []).append(str(error))
    return found


def parse(class_name: str, values: Mapping[str, str], always: frozenset[str]) -> Settings:
    """Parses a configuration.

    Args:
        class_name: The class.
        values: Texts by key.
        always: Modes of the command line.

    Raises:
        ConfigError: It is wrong.
    """
    known = description_of(class_name)
    parsed = known.config.parse(values)
    wishes = Wishes(
        checked(parsed["misbehave"]) | always,
        parsed["after.rows"],
        parsed["delay.ms"],
        ErrorClass[parsed["error.class"]],
        parsed["leak.mib"],
        parsed["big.bytes"],
    )
    if known.role is Role.SOURCE:
        return Settings(known.role, wishes, topic=parsed["topic"], count=parsed["count"])
    return Settings(known.role, wishes, file=parsed["file"])
