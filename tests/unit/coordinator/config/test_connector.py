"""A configuration is checked as the real worker checks it: what it answered is kept in data/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, Importance, NonEmptyValidator
from wherry.contract.description import Capabilities, ClassDescription, Role
from wherry.coordinator.config import connector
from wherry.coordinator.config.clientkeys import OverrideError
from wherry.coordinator.config.connector import ConnectorRules, validate
from wherry.coordinator.config.connectorkeys import COMMON_KEYS
from wherry.coordinator.config.overrides import OverridePolicy
from wherry.coordinator.rest.shapes import config_infos

REAL = json.loads((Path(__file__).parent / "data/kafka-connect-4.3.1-validations.json").read_text())
FILE = ConfigKey("file", importance=Importance.HIGH)
TOPIC = ConfigKey("topic", required=True, importance=Importance.HIGH, validators=(NonEmptyValidator(),))
BATCH = ConfigKey("batch.size", ConfigType.INT, "2000", importance=Importance.LOW)
SOURCE = ClassDescription("x.FileStreamSourceConnector", Role.SOURCE, ConfigDef([FILE, TOPIC, BATCH]))
SINK = ClassDescription("x.FileStreamSinkConnector", Role.SINK, ConfigDef([FILE]))
JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
RULES = ConnectorRules(converters={"key": JSON, "value": JSON, "header": SIMPLE}, version="4.3.1")
GOOD = {"name": "c", "connector.class": "FileStreamSource", "topic": "t"}
GOOD_SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t"}


def check(config, description=SOURCE, **changes):
    return validate(config, description, version="4.3.1", rules=changes.pop("rules", RULES), **changes)


def errors(config, description=SOURCE, **changes):
    infos = check(config, description, **changes)
    return {each.value.name: list(each.value.errors) for each in infos.configs if each.value.errors}


@pytest.mark.parametrize("case", REAL["cases"], ids=lambda case: case["case"])
def test_values_and_errors_are_those_of_the_real_worker(case):
    described = SINK if case["case"].startswith("sink") else SOURCE
    shown = config_infos(check(case["config"], described))
    values = [[each["value"]["name"], each["value"]["value"], each["value"]["errors"]] for each in shown["configs"]]
    assert values == case["values"]
    assert (shown["error_count"], shown["groups"]) == (case["error_count"], case["groups"])


@pytest.mark.parametrize(("described", "role"), [(SOURCE, "source"), (SINK, "sink")])
def test_definitions_are_those_of_the_real_worker_but_for_their_prose(described, role):
    shown = config_infos(check(GOOD if role == "source" else GOOD_SINK, described))
    definitions = [each["definition"] for each in shown["configs"]]
    for definition in definitions:
        del definition["documentation"]
    assert definitions == REAL["definitions"][role]


@pytest.mark.parametrize(("described", "count"), [(SOURCE, 27), (SINK, 25)])
def test_the_file_connectors_have_as_many_keys_as_kafkas(described, count):
    assert len(connector.keys_of(described)) == count


def test_a_null_value_is_an_error_but_for_the_classs_own_keys():
    null = "Null value can not be supplied as the configuration value."
    found = errors({**GOOD, "errors.log.enable": None, "batch.size": None, "unknown": None})
    assert found == {"unknown": [null], "errors.log.enable": [null]}


def test_a_converter_of_another_making_is_refused():
    assert errors({**GOOD, "value.converter": "nope"}) == {
        "value.converter": ["Invalid value nope for configuration value.converter: Class nope could not be found."]
    }


def test_a_sink_that_takes_bytes_has_converters_of_its_own_but_no_transformation():
    raw = ClassDescription("x.RawSink", Role.SINK, ConfigDef([FILE]), capabilities=Capabilities(raw=True))
    assert errors({**GOOD_SINK, "value.converter": "com.example.Mine"}, raw) == {}
    route = {
        "transforms": "r",
        "transforms.r.type": "RegexRouter",
        "transforms.r.regex": "a",
        "transforms.r.replacement": "b",
    }
    told = "x.RawSink takes records as bytes, which no transformation looks into. Remove transforms."
    assert errors({**GOOD_SINK, **route}, raw) == {"transforms": [told]}
    assert errors({**GOOD_SINK, **route}, SINK) == {}


def test_a_converters_settings_are_checked_and_shown():
    config = {**GOOD, "value.converter": "Json", "value.converter.decimal.format": "x"}
    assert (
        "String must be one of (case insensitive): NUMERIC, BASE64"
        in errors(config)["value.converter.decimal.format"][0]
    )
    shown = {each.value.name: each.value.value for each in check(config).configs}
    assert shown["value.converter"] == JSON
    assert shown["value.converter.schemas.enable"] == "true"


@pytest.mark.parametrize(
    "key",
    ["basic.auth.user.info", "schema.registry.basic.auth.user.info", "bearer.auth.token",
     "schema.registry.bearer.auth.token", "sasl.jaas.config", "schema.registry.ssl.truststore.password",
     "schema.registry.ssl.keystore.password", "schema.registry.ssl.key.password", "schema.registry.ssl.keystore.key"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["AvroConverter", "JsonSchemaConverter", "ProtobufConverter"])
def test_what_opens_a_registry_is_hidden(kind, key):
    config = {**GOOD, "value.converter": kind, "value.converter.schema.registry.url": "http://r:1"}
    shown = check({**config, f"value.converter.{key}": "geheim"})
    values = {each.value.name: each.value.value for each in shown.configs}
    assert values[f"value.converter.{key}"] == "[hidden]"
    assert "geheim" not in str(config_infos(shown))


def test_a_header_converter_is_no_converter():
    assert errors({**GOOD, "key.converter": SIMPLE}) != {}
    assert errors({**GOOD, "header.converter": SIMPLE}) == {}


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("4.3.1", True),
        ("4.3.0", False),
        ("[4.0,5.0)", True),
        ("(4.3.1,)", False),
        ("[,4.3.1]", True),
        ("[4.3.1]", True),
    ],
)
def test_a_version_is_exact_or_a_range(version, fits):
    assert (errors({**GOOD, "connector.plugin.version": version}) == {}) is fits


def test_exactly_once_cannot_be_required_from_a_release_without_it():
    assert "exactly.once.support" in errors({**GOOD, "exactly.once.support": "Required"})
    assert errors({**GOOD, "exactly.once.support": "REQUESTED"}) == {}


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", set()),
        ("None", {"linger.ms", "sasl.mechanism"}),
        ("Principal", {"linger.ms"}),
        ("Allowlist", {"sasl.mechanism"}),
    ],
)
def test_overrides_are_subject_to_the_policy(policy, refused):
    rules = ConnectorRules(overrides=OverridePolicy(policy, frozenset({"linger.ms"})))
    config = {**GOOD, "producer.override.linger.ms": "5", "producer.override.sasl.mechanism": "PLAIN"}
    assert set(errors(config, rules=rules)) == {f"producer.override.{key}" for key in refused}


def test_an_override_that_is_refused_is_told_in_kafkas_words():
    found = errors({**GOOD, "producer.override.x": "1"}, rules=ConnectorRules(overrides=OverridePolicy("None")))
    assert found["producer.override.x"] == [
        "The 'None' policy does not allow 'x' to be overridden in the connector configuration."
    ]


def test_a_client_the_connector_does_not_have_may_be_overridden_by_anybody():
    assert not errors({**GOOD, "consumer.override.x": "1"}, rules=ConnectorRules(overrides=OverridePolicy("None")))


def test_an_override_that_names_nothing_is_none():
    assert not errors({**GOOD, "producer.override.": "1"}, rules=ConnectorRules(overrides=OverridePolicy("None")))


def test_what_the_plugin_found_is_added_to_its_keys():
    found = errors(GOOD, found={"file": ["No such folder."], "table.x": ["No such table."]})
    assert found == {"table.x": ["No such table."], "file": ["No such folder."]}


def test_what_the_plugin_offers_takes_the_place_of_what_it_described():
    infos = check(GOOD, recommended={"file": ["/a", "/b"]})
    assert [each.value.recommended_values for each in infos.configs if each.value.name == "file"] == [("/a", "/b")]


def test_a_password_is_hidden_in_value_and_default():
    secret = ConfigKey("pw", ConfigType.PASSWORD, "default-secret")
    infos = check({**GOOD, "pw": "my-secret"}, ClassDescription("x.S", Role.SOURCE, ConfigDef([TOPIC, secret])))
    (shown,) = [each for each in infos.configs if each.value.name == "pw"]
    assert (shown.value.value, shown.definition.default_value) == ("[hidden]", "[hidden]")


def test_a_dead_letter_topic_that_is_read_is_told_beside_what_else_is_wrong_with_the_topics():
    both = {**GOOD_SINK, "topics": "t,dead", "topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dead"}
    exclusive = "topics and topics.regex are mutually exclusive options, but both are set."
    read = "The DLQ topic 'dead' may not be {} consumed by the connector"
    assert errors(both, SINK) == {
        "topics": [exclusive, read.format("included in the list of topics ('topics=[t, dead]')")],
        "topics.regex": [exclusive, read.format("matched by the regex for the topics ('topics.regex=d.*')")],
    }


def test_a_sink_may_not_join_the_workers_group():
    rules = ConnectorRules(group_id="connect-cluster")
    own = {**GOOD_SINK, "consumer.override.group.id": "connect-cluster"}
    found = errors(own, SINK, rules=rules)
    assert found["consumer.override.group.id"] == [
        "Consumer group connect-cluster conflicts with Connect worker group connect-cluster"
    ]
    assert errors({**GOOD_SINK, "name": "cluster"}, SINK, rules=rules)["name"] == [
        "Consumer group for sink connector named cluster conflicts with Connect worker group connect-cluster"
    ]
    assert not any(errors({**GOOD_SINK, "consumer.override.group.id": "mine"}, SINK, rules=rules).values())


def test_a_version_that_is_not_there_leaves_only_what_all_connectors_have():
    infos = validate({**GOOD, "connector.plugin.version": "9.9"}, SOURCE, version="1.2", rules=RULES)
    assert infos.error_count == 2
    assert [config.value.name for config in infos.configs] == [key.name for key in COMMON_KEYS]


def test_overrides_are_shown_between_the_classs_keys_and_the_converters():
    config = {**GOOD, "producer.override.linger.ms": "5", "key.converter": "Json", "producer.override.foo": "1"}
    names = [config.value.name for config in validate(config, SOURCE, rules=RULES).configs]
    at = names.index("producer.override.linger.ms")
    assert names[at - 1] == "producer.override.foo"
    assert names[at + 1].startswith("key.converter.")


def test_an_override_of_another_type_is_an_error_of_its_own():
    with pytest.raises(OverrideError):
        validate({**GOOD, "producer.override.linger.ms": "x"}, SOURCE, rules=RULES)
