"""Transformations beyond Kafka Connect's: the same keys as the worker reads, and sentences about what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, RangeValidator
from wherry.contract.description import ClassDescription, Role
from wherry.contract.errors import ConfigError
from wherry.coordinator.config import owntransforms
from wherry.coordinator.config.connector import ConnectorRules, validate
from wherry.coordinator.plugins import PluginRegistry
from wherry.worker.transform.registry import chain_of

SOURCE = ClassDescription("x.Source", Role.SOURCE, ConfigDef([ConfigKey("topic")]))
GOOD = {"name": "c", "connector.class": "x.Source", "transforms": "t"}


@pytest.fixture
def plugins(tmp_path):
    (tmp_path / "sidecar.yaml").write_text(
        "name: texts\nversion: 1.2.3\nrun: [./run]\nenvironment: {none: true}\nclasses:\n"
        "  - {class: x.Upper, role: transform, aliases: [Upper]}\n  - {class: x.Source, role: source}\n"
    )
    keys = ConfigDef(
        [
            ConfigKey("field", required=True),
            ConfigKey("times", ConfigType.INT, "1", validators=(RangeValidator(1, 9),)),
            ConfigKey("secret", ConfigType.PASSWORD),
        ]
    )
    return PluginRegistry(
        [tmp_path], lambda manifest: [ClassDescription(each.class_name, each.role, keys) for each in manifest.classes]
    )


def errors(config: dict[str, str], rules: ConnectorRules | None = None) -> dict[str, list[str]]:
    keys = {f"transforms.t.{key}": value for key, value in config.items()}
    infos = validate({**GOOD, **keys}, SOURCE, rules=rules or ConnectorRules())
    return {each.value.name: list(each.value.errors) for each in infos.configs if each.value.errors}


@pytest.mark.parametrize("name", ["Explode", "wherry.transforms.Explode", "Dedupe"])
def test_they_answer_to_both_of_their_names(name):
    assert errors({"type": name}) == {}
    assert len(chain_of({"transforms": "t", "transforms.t.type": name}, is_sink=True)) == 1


WRONG: list[tuple[dict[str, str], str, str]] = [
    ({"type": "Explode", "on.empty": "maybe"}, "on.empty", "String must be one of: drop, keep, fail"),
    ({"type": "Explode", "index.field": "n"}, "index.field", "it needs field, and keep.fields=true"),
    ({"type": "Explode", "elements.max": "0"}, "elements.max", "Value must be at least 1"),
    ({"type": "Dedupe", "fields": "a,a"}, "fields", "a field is named twice"),
    ({"type": "Dedupe", "window.records": "9000000"}, "window.records", "Value must be no more than 5000000"),
    ({"type": "Sql"}, "query", "which has no default value"),
    ({"type": "Sql", "query": "SELECT max(a) FROM records"}, "query", "max() needs other records"),
]


@pytest.mark.parametrize(("config", "key", "told"), WRONG)
def test_what_is_wrong_is_told_of_its_key(config, key, told):
    found = errors(config)
    assert list(found) == [f"transforms.t.{key}"]
    assert told in found[f"transforms.t.{key}"][0]


@pytest.mark.parametrize(("config", "key", "told"), WRONG)
def test_the_worker_refuses_the_same(config, key, told):
    del told
    with pytest.raises(ConfigError) as refused:
        chain_of({"transforms": "t", **{f"transforms.t.{name}": text for name, text in config.items()}}, is_sink=True)
    assert refused.value.key == f"transforms.t.{key}"


@pytest.mark.parametrize("each", owntransforms.CLASSES, ids=lambda each: each.class_name)
def test_defaults_are_those_of_the_worker(each):
    shown = {key.name: key.default_value for key in each.keys if key.default_value is not None}
    given = {"query": "SELECT * FROM records"} if each.class_name.endswith("Sql") else {}
    plain, told = (
        vars(chain_of(
            {"transforms": "t", "transforms.t.type": each.class_name,
             **{f"transforms.t.{name}": text for name, text in {**given, **values}.items()}},
            is_sink=True,
        )[0].transform)
        for values in ({}, shown)
    )  # fmt: skip
    assert plain == told


def test_those_of_plugins_are_offered_and_their_keys_shown(plugins):
    more = owntransforms.WithPlugins(plugins)
    assert more.names == (*owntransforms.OWN.names, "x.Upper")
    found = more.find("Upper")
    assert found is not None
    assert (found.class_name, found.version) == ("x.Upper", "1.2.3")
    assert [key.name for key in found.keys] == ["field", "times", "secret", "wherry.timeout.ms"]
    assert more.find("x.Source") is None


def test_settings_of_plugins_are_checked_by_their_own_rules(plugins):
    rules = ConnectorRules(transforms=owntransforms.WithPlugins(plugins))
    found: dict[str, Any] = errors({"type": "Upper", "times": "10", "wherry.timeout.ms": "0"}, rules)
    assert found == {
        "transforms.t.field": ['Missing required configuration "transforms.t.field" which has no default value.'],
        "transforms.t.times": ["Invalid value 10 for configuration transforms.t.times: Value must be no more than 9"],
        "transforms.t.wherry.timeout.ms": [
            "Invalid value 0 for configuration transforms.t.wherry.timeout.ms: Value must be at least 1"
        ],
    }


def test_a_use_of_a_plugin_has_the_settings_that_are_its_own(plugins):
    config = {
        "transforms": "a, b",
        "transforms.a.type": "Upper", "transforms.a.field": "f", "transforms.a.predicate": "p",
        "transforms.a.wherry.timeout.ms": "5", "transforms.b.type": "Filter",
    }  # fmt: skip
    (use,) = owntransforms.WithPlugins(plugins).uses(config)
    assert (use.alias, use.plugin.class_name, use.config) == ("a", "x.Upper", {"field": "f"})


def test_code_in_configurations_is_for_the_operator_to_allow(tmp_path):
    (tmp_path / "sidecar.yaml").write_text(
        "name: python\nversion: 1.0.0\nrun: [./run]\nenvironment: {none: true}\nclasses:\n"
        "  - {class: wherry.transforms.Python, role: transform, aliases: [Python]}\n"
    )
    described = [ClassDescription("wherry.transforms.Python", Role.TRANSFORM, ConfigDef([ConfigKey("expression")]))]
    registry = PluginRegistry([tmp_path], lambda manifest: described)
    refused = owntransforms.WithPlugins(registry)
    allowed = owntransforms.WithPlugins(registry, python=True)
    config = {"type": "Python", "expression": "value"}
    found = errors(config, ConnectorRules(transforms=refused))
    assert "wherry.transforms.python.enabled=true" in found["transforms.t.type"][0]
    assert errors(config, ConnectorRules(transforms=allowed)) == {}
    full = {"transforms": "t", "transforms.t.type": "Python"}
    with pytest.raises(ConfigError, match="does not allow"):
        list(refused.uses(full))
    assert len(list(allowed.uses(full))) == 1
