"""Configuration classes: annotations and keys become Kafka's ConfigDef."""

from __future__ import annotations

import pytest

from wherry.contract.config import ConfigType, Importance, RangeValidator, Width
from wherry.contract.errors import ConfigError
from wherry.sdk import Config, Secret, key


class Base(Config):
    topic: str = key(doc="Where to.", importance="high", group="Main")


class Mine(Base):
    batch_size: int = key(default=100, min=1, group="Main", width="short")
    ratio: float = key(default=0.5)
    on: bool = key(default=False)
    names: list[str] = key(default=["a", "b"])
    password: Secret | None = key(default=None, aliases=("pass",))
    total: int = key(default=0, type="long", name="grand.Total")


def test_attributes_become_keys_in_order() -> None:
    kinds = {known.name: known.type for known in Mine.definition.keys}
    assert kinds == {
        "topic": ConfigType.STRING,
        "batch.size": ConfigType.INT,
        "ratio": ConfigType.DOUBLE,
        "on": ConfigType.BOOLEAN,
        "names": ConfigType.LIST,
        "password": ConfigType.PASSWORD,
        "grand.Total": ConfigType.LONG,
    }
    assert list(kinds)[:2] == ["topic", "batch.size"]


def test_a_key_carries_what_it_was_told() -> None:
    topic, size = Mine.definition["topic"], Mine.definition["batch.size"]
    assert (topic.required, topic.importance, topic.documentation) == (True, Importance.HIGH, "Where to.")
    assert (size.required, size.default_value, size.width) == (False, "100", Width.SHORT)
    assert size.validators == (RangeValidator(1, None),)
    assert (topic.order_in_group, size.order_in_group) == (1, 2)


def test_values_are_parsed_into_attributes() -> None:
    config = Mine.parse({"topic": "t", "names": "x, y", "pass": "s", "on": "TRUE", "other": "o"})
    assert (config.topic, config.batch_size, config.names, config.on) == ("t", 100, ["x", "y"], True)
    assert config.password is not None
    assert config.password.reveal() == "s"
    assert config.originals == {"topic": "t", "names": "x, y", "on": "TRUE", "other": "o"}


def test_secrets_are_not_printed() -> None:
    assert "hush" not in repr(Mine.parse({"topic": "t", "password": "hush"}))


def test_a_wrong_value_is_told_in_kafkas_words() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value 0 for configuration batch\.size: Value must be at least 1"):
        Mine.parse({"topic": "t", "batch.size": "0"})


def test_an_annotation_that_is_no_type_of_kafka_is_refused() -> None:
    with pytest.raises(ConfigError, match="The key when is annotated with"):

        class _Wrong(Config):
            when: bytes = key(default=None)


def test_a_base_class_is_left_as_it_was() -> None:
    assert [known.name for known in Base.definition.keys] == ["topic"]
