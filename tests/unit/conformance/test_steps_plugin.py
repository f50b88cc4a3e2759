"""Checks of what Describe tells."""

from __future__ import annotations

import pytest

from wherry.conformance.failure import Failure
from wherry.conformance.steps_plugin import _expect_sound
from wherry.connector.v1 import common_pb2, plugin_pb2


def description(**members: object) -> plugin_pb2.ClassDescription:
    good = {
        "class_name": "A",
        "role": common_pb2.ROLE_SOURCE,
        "source_class": plugin_pb2.SOURCE_CLASS_REPLAYABLE,
    }
    return plugin_pb2.ClassDescription(**{**good, **members})  # type: ignore[arg-type]


def key(**members: object) -> plugin_pb2.ConfigKey:
    good = {"name": "k", "type": plugin_pb2.CONFIG_TYPE_INT, "documentation": "What it does."}
    return plugin_pb2.ConfigKey(**{**good, **members})  # type: ignore[arg-type]


def test_a_sound_description_passes() -> None:
    _expect_sound(description(config=[key(default_value="1"), key(name="r", required=True)]))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (description(class_name=""), "has no name or no role"),
        (description(source_class=0), "the source class 0"),
        (description(sink_class=1), "the sink class 1"),
        (description(capabilities=plugin_pb2.Capabilities(raw=True, typed=True)), "bytes as they are .raw. and for"),
        (description(config=[key(), key()]), "has a key twice"),
        (description(config=[key(documentation="")]), "doesn't tell what k does"),
        (description(config=[key(required=True, default_value="1")]), "requires k, which has a default"),
        (description(config=[key(default_value="dog")]), "has a default of k that it would refuse"),
        (description(offset_schema_json="{"), "schema of positions that isn't JSON"),
    ],
)
def test_a_contradiction_is_a_failure(wrong: plugin_pb2.ClassDescription, sentence: str) -> None:
    with pytest.raises(Failure, match=sentence):
        _expect_sound(wrong)
