"""Direct pipelines: a source straight into a sink, without Kafka between.

A source connector becomes one by `sink.connector.class`; every other `sink.` key is the sink's own, without the prefix.
Transformations and `errors.*` are the connector's as ever; converters have nothing to convert. Positions are a
source's, so that offsets are read and altered as those of any source. What the pair guarantees is decided by both
classes: only a source that can be read again lets a sink keep its promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wherry.contract.config import invalid
from wherry.contract.description import ClassDescription, Role, SinkClass, SourceClass

PREFIX: Final = "sink."
SINK_CLASS: Final = f"{PREFIX}connector.class"
_CLASHES: Final = (
    "topic.creation.default.partitions", "topic.creation.default.replication.factor", "topic.creation.groups",
    "offsets.storage.topic", "exactly.once.support", "transaction.boundary", "transaction.boundary.interval.ms",
)  # fmt: skip


def is_direct(config: Mapping[str, str | None]) -> bool:
    """Whether a connector is a direct pipeline."""
    return config.get(SINK_CLASS) is not None


def sink_config(config: Mapping[str, str]) -> dict[str, str]:
    """The sink's own configuration within a pipeline's."""
    own = {key.removeprefix(PREFIX): value for key, value in config.items() if key.startswith(PREFIX)}
    return {"name": config.get("name", ""), **own}


def source_config(config: Mapping[str, str]) -> dict[str, str]:
    """What the source of a pipeline gets to see: nothing of the sink's, whose secrets are not its own."""
    if not is_direct(config):
        return dict(config)
    return {key: value for key, value in config.items() if not key.startswith(PREFIX)}


def problems(
    config: Mapping[str, str], source: ClassDescription, sink: ClassDescription | None
) -> dict[str, list[str]]:
    """What keeps source and sink from being a pipeline, by key; the sink's own values are not looked at.

    Args:
        config: The pipeline's, with placeholders filled in.
        source: Class of the source.
        sink: Class that `sink.connector.class` names; None if there is none such.
    """
    name = config.get(SINK_CLASS, "")
    if source.role is not Role.SOURCE:
        return {SINK_CLASS: [f"{SINK_CLASS} makes a pipeline of a source; {source.class_name} is a sink."]}
    if sink is None:
        return {SINK_CLASS: [invalid(SINK_CLASS, name, "Class could not be found.")]}
    if sink.role is not Role.SINK:
        return {SINK_CLASS: [invalid(SINK_CLASS, name, f"{sink.class_name} is no sink.")]}
    if sink.capabilities.raw:
        return {SINK_CLASS: [invalid(SINK_CLASS, name, f"{sink.class_name} takes bytes from Kafka only.")]}
    return {
        key: [f"{key} is about what is written to Kafka; a direct pipeline writes nothing there. Remove it."]
        for key in _CLASHES
        if key in config
    }


def delivery_class(source: ClassDescription, sink_class: SinkClass | None) -> SinkClass | None:
    """What a sink's promise is worth behind this source: of a source that can't be read again, nothing is left."""
    return sink_class if source.source_class is SourceClass.REPLAYABLE else SinkClass.APPEND
