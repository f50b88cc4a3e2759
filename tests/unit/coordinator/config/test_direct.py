"""Direct pipelines: whose keys are whose, and which pairs are none."""

from __future__ import annotations

import pytest

from wherry.contract.config import ConfigDef
from wherry.contract.description import Capabilities, ClassDescription, Role, SinkClass, SourceClass
from wherry.coordinator.config.direct import (
    SINK_CLASS,
    delivery_class,
    is_direct,
    problems,
    sink_config,
    source_config,
)

CONFIG = {
    "name": "p",
    "connector.class": "Files",
    "file": "/in",
    SINK_CLASS: "Table",
    "sink.file": "/out",
    "sink.password": "geheim",
}
SOURCE = ClassDescription("org.example.Files", Role.SOURCE, ConfigDef(()), source_class=SourceClass.REPLAYABLE)
LEASED = ClassDescription("org.example.Queue", Role.SOURCE, ConfigDef(()), source_class=SourceClass.LEASED)


def sink(kind: SinkClass = SinkClass.APPEND, *, raw: bool = False) -> ClassDescription:
    return ClassDescription(
        "org.example.Table", Role.SINK, ConfigDef(()), sink_class=kind, capabilities=Capabilities(raw=raw)
    )


def test_each_side_sees_its_own_keys_only() -> None:
    assert sink_config(CONFIG) == {
        "name": "p",
        "connector.class": "Table",
        "file": "/out",
        "password": "geheim",
    }
    assert source_config(CONFIG) == {"name": "p", "connector.class": "Files", "file": "/in"}


def test_without_a_sink_class_it_is_an_ordinary_connector() -> None:
    config = {"name": "c", "sink.like": "kept"}
    assert not is_direct(config)
    assert source_config(config) == config


def test_a_source_and_a_sink_are_a_pipeline() -> None:
    assert problems(CONFIG, SOURCE, sink()) == {}


@pytest.mark.parametrize(
    ("source", "other", "message"),
    [
        (sink(), sink(), "makes a pipeline of a source; org.example.Table is a sink"),
        (SOURCE, None, "Class could not be found"),
        (SOURCE, SOURCE, "org.example.Files is no sink"),
        (SOURCE, sink(raw=True), "bytes from Kafka only"),
    ],
)
def test_what_is_no_pipeline_is_refused_in_a_sentence(
    source: ClassDescription, other: ClassDescription | None, message: str
) -> None:
    (found,) = problems(CONFIG, source, other)[SINK_CLASS]
    assert message in found


def test_what_is_about_writing_to_kafka_is_refused() -> None:
    assert list(problems({**CONFIG, "offsets.storage.topic": "o"}, SOURCE, sink())) == ["offsets.storage.topic"]


def test_behind_a_source_that_cannot_be_read_again_no_sink_keeps_its_promise() -> None:
    assert delivery_class(SOURCE, SinkClass.TRANSACTIONAL) is SinkClass.TRANSACTIONAL
    assert delivery_class(LEASED, SinkClass.TRANSACTIONAL) is SinkClass.APPEND
