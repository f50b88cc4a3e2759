"""Transformations and predicates are shown and checked as by the real worker: what it answered is kept in data/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, NonEmptyValidator
from wherry.contract.description import ClassDescription, Role
from wherry.coordinator.config import transforms
from wherry.coordinator.config.connector import ConnectorRules, validate
from wherry.coordinator.config.report import key_info
from wherry.coordinator.rest.shapes import config_infos, config_key

REAL = json.loads((Path(__file__).parent / "data/kafka-connect-4.3.1-transforms.json").read_text())
LISTS = json.loads((Path(__file__).parent / "data/kafka-connect-4.3.1-lists.json").read_text())
SOURCE = ClassDescription(
    "x.FileStreamSourceConnector",
    Role.SOURCE,
    ConfigDef([
        ConfigKey("file"),
        ConfigKey("topic", required=True, validators=(NonEmptyValidator(),)),
        ConfigKey("batch.size", ConfigType.INT, "2000"),
    ]),
)  # fmt: skip
# A NullPointerException's text is a defect; that there is none is what it means.
NULL_TEXT = ('Cannot invoke "String.isEmpty()" because "this.pattern" is null', "there is none")


def shown(case):
    return config_infos(validate(case["config"], SOURCE, version="4.3.1", rules=ConnectorRules(version="4.3.1")))


def of_aliases(answer):
    return [each for each in answer["configs"] if each["value"]["name"].startswith(("transforms", "predicates"))]


def kafkas(value):
    """What is offered, without what only Wherry has."""
    return [each for each in value["recommended_values"] if not each.startswith("wherry.")]


@pytest.mark.parametrize("case", REAL["cases"], ids=lambda case: case["case"])
def test_values_and_errors_are_those_of_the_real_worker(case):
    answer = shown(case)
    found = [[each["value"]["name"], each["value"]["value"], each["value"]["errors"]] for each in of_aliases(answer)]
    wanted = [[name, value, [error.replace(*NULL_TEXT) for error in errors]] for name, value, errors in case["values"]]
    assert sorted(found, key=lambda each: each[0]) == sorted(wanted, key=lambda each: each[0])
    assert answer["error_count"] == case["error_count"]


@pytest.mark.parametrize(("kind", "key", "text", "error"), LISTS)
def test_lists_of_names_are_refused_as_by_the_real_classes(kind, key, text, error):
    config = {"name": "x", "connector.class": "FileStreamSource", "topic": "t", "transforms": "a"}
    config |= {"transforms.a.type": f"org.apache.kafka.connect.transforms.{kind}", f"transforms.a.{key}": text}
    [found] = [each["value"] for each in of_aliases(shown({"config": config})) if each["value"]["name"].endswith(key)]
    assert found["errors"] == ([error] if error else [])


@pytest.mark.parametrize("case", REAL["cases"], ids=lambda case: case["case"])
def test_keys_come_in_the_order_and_shape_of_the_real_worker(case):
    answer = shown(case)
    names = ("name", "type", "required", "default_value", "importance", "group", "order_in_group", "width")
    found = [
        [*(each["definition"][name] for name in (*names, "display_name")), len(kafkas(each["value"]))]
        for each in of_aliases(answer)
        if "." in each["value"]["name"]
    ]
    assert found == case["orders"]
    assert [group for group in answer["groups"] if ": " in group] == case["groups"]


@pytest.mark.parametrize("class_name", REAL["keys"])
def test_a_classs_keys_are_those_of_the_real_worker_but_for_their_prose(class_name):
    found = transforms.find(class_name)
    assert found is not None
    told = [config_key(key_info(key)) for key in found.keys]
    for key in told:
        del key["documentation"]
    assert told == REAL["keys"][class_name]


def test_all_classes_are_offered_under_kafka_connects_names():
    offered = (*transforms.class_names(predicates=False), *transforms.class_names(predicates=True))
    assert offered == tuple(REAL["keys"])


def test_nested_classes_answer_to_their_full_name_only():
    assert transforms.find("Filter") is not None
    assert transforms.find("Cast$Value") is None
