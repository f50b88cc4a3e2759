"""Connector files in their three forms."""

from __future__ import annotations

import json

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.api import TargetState
from wherry.coordinator.config.connectorfile import load


@pytest.fixture
def file(tmp_path):
    def write(content, name="c.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_properties_are_taken_as_they_are(file):
    found = load(file("name=c\ntasks.max=2\n", "c.properties"))
    assert (found.name, found.config, found.initial_state) == ("c", {"name": "c", "tasks.max": "2"}, None)


def test_a_flat_map_is_taken_with_its_numbers_and_booleans_as_texts(file):
    found = load(file('{"name": "c", "n": 1.50, "b": true}'))
    assert found.config == {"name": "c", "n": "1.50", "b": "true"}


def test_a_request_gives_name_and_initial_state(file):
    found = load(file({"name": "c", "config": {"n": 1}, "initial_state": "paused"}))
    assert (found.name, found.config, found.initial_state) == ("c", {"n": "1", "name": "c"}, TargetState.PAUSED)


def test_the_form_is_told_by_the_content_not_the_name(file):
    assert load(file({"name": "c"}, "c.properties")).name == "c"
    assert load(file("name=c", "c.json")).name == "c"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tasks.max=1", "missing the mandatory 'name' configuration"),
        ({"config": {"a": "b"}}, "missing the mandatory 'name' configuration"),
        ('{"name": ', "is not valid JSON"),
        ({"name": "c", "a": {}}, "no text, number or boolean at 'a'"),
        ({"name": "c", "config": {"name": "d"}}, "has two names: 'c' and, within config, 'd'"),
        ({"name": "c", "config": {}, "initial_state": "x"}, "one of RUNNING, PAUSED, STOPPED is right"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_its_path(file, content, message):
    path = file(content)
    with pytest.raises(ConfigError, match=message) as refused:
        load(path)
    assert str(path) in refused.value.message


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "nope.json")
