"""Configuration: Kafka's types, checks and words."""

from __future__ import annotations

import pytest

from wherry.contract import from_proto, to_proto
from wherry.contract.config import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    NonEmptyValidator,
    OneOfValidator,
    PatternValidator,
    RangeValidator,
    Secret,
    Width,
    as_text,
)
from wherry.contract.errors import ConfigError

TASKS = ConfigKey("tasks.max", ConfigType.INT, "1", validators=(RangeValidator(min=1),))
TOPIC = ConfigKey("topic", required=True, validators=(NonEmptyValidator(),))
PASSWORD = ConfigKey("password", ConfigType.PASSWORD, aliases=("pass",))
MODE = ConfigKey("mode", default_value="a", validators=(OneOfValidator(("a", "b")),))
DEFINITION = ConfigDef([TASKS, TOPIC, PASSWORD, MODE])


def problem(key: ConfigKey, text: str | None) -> list[str]:
    return ConfigDef([key]).validate({key.name: text})[key.name]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " True ", True),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "\u0667", 7),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.LONG, " 9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.DOUBLE, "2.5d", 2.5),
        (ConfigType.LIST, " a , b,c ", ["a", "b", "c"]),
        (ConfigType.LIST, "", []),
        (ConfigType.STRING, "  x y ", "x y"),
        (ConfigType.CLASS, "a.B", "a.B"),
        (ConfigType.PASSWORD, "s", Secret("s")),
    ],
)
def test_texts_become_values_of_their_type(kind: ConfigType, text: str, value: object) -> None:
    assert ConfigKey("k", kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (ConfigType.INT, "dog", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "1.5", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
    ],
)
def test_texts_of_another_type_are_refused_in_kafkas_words(kind: ConfigType, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ConfigKey("k", kind).parse(text)
    assert str(refused.value) == f"Invalid value {text} for configuration k: {words}"


def test_a_wrong_number_is_told_twice_as_kafka_does() -> None:
    assert problem(TASKS, "dog") == [
        "Invalid value dog for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    ]


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (TASKS, "0", "Invalid value 0 for configuration tasks.max: Value must be at least 1"),
        (
            ConfigKey("k", ConfigType.DOUBLE, "0.5", validators=(RangeValidator(max=0.5),)),
            "1",
            "Invalid value 1.0 for configuration k: Value must be no more than 0.5",
        ),
        (MODE, "c", "Invalid value c for configuration mode: String must be one of: a, b"),
        (TOPIC, "", "Invalid value  for configuration topic: String must be non-empty"),
        (
            ConfigKey("k", default_value="A", validators=(OneOfValidator(("A", "B"), ignore_case=True),)),
            "c",
            "Invalid value c for configuration k: String must be one of (case insensitive): A, B",
        ),
        (
            ConfigKey("k", default_value="1", validators=(PatternValidator("[0-9]+"),)),
            "1a",
            "Invalid value 1a for configuration k: Value must match the pattern [0-9]+",
        ),
        (
            ConfigKey("k", ConfigType.LIST, "a", validators=(OneOfValidator(("a", "b")),)),
            "a,c",
            "Invalid value [a, c] for configuration k: String must be one of: a, b",
        ),
    ],
)
def test_values_out_of_bounds_are_refused_in_kafkas_words(key: ConfigKey, text: str, words: str) -> None:
    assert problem(key, text) == [words]


def test_a_missing_required_key_is_told_in_kafkas_words() -> None:
    words = 'Missing required configuration "topic" which has no default value.'
    assert DEFINITION.validate({})["topic"] == [words]
    with pytest.raises(ConfigError) as refused:
        DEFINITION.parse({})
    assert (str(refused.value), refused.value.key) == (words, "topic")


def test_defaults_fill_in_and_unknown_keys_are_left_alone() -> None:
    assert DEFINITION.parse({"topic": "t", "colour": "red"}) == {
        "tasks.max": 1,
        "topic": "t",
        "password": None,
        "mode": "a",
    }


def test_another_spelling_is_taken_when_the_name_is_absent() -> None:
    assert DEFINITION.parse({"topic": "t", "pass": "s"})["password"] == Secret("s")
    assert DEFINITION.parse({"topic": "t", "pass": "s", "password": "u"})["password"] == Secret("u")


def test_an_optional_key_without_default_may_be_null_whatever_its_checks() -> None:
    assert problem(ConfigKey("k", ConfigType.INT, validators=(RangeValidator(min=1),)), None) == []


def test_secrets_are_parted_and_never_shown() -> None:
    shown, secrets = DEFINITION.split_secrets({"topic": "t", "pass": "p", "password": "q"})
    assert (shown, secrets) == ({"topic": "t"}, {"pass": "p", "password": "q"})
    assert f"{Secret('q')} {Secret('q')!r}" == "[hidden] [hidden]"
    assert Secret("q").reveal() == "q"


def test_a_key_defined_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tasks\.max is defined twice"):
        ConfigDef([TASKS, TASKS])


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (1.0, "1.0"), (["a", "b"], "a,b"), (None, None), (Secret("x"), "x"), ("t", "t"), (5, "5")],
)
def test_values_turn_back_into_texts(value: object, text: str | None) -> None:
    assert as_text(value) == text


def test_a_key_goes_over_the_wire_and_back() -> None:
    key = ConfigKey(
        name="k",
        type=ConfigType.LIST,
        default_value="a",
        importance=Importance.HIGH,
        documentation="What it does.",
        group="Group",
        order_in_group=3,
        width=Width.LONG,
        display_name="Key",
        dependents=("other",),
        validators=(
            RangeValidator(1, None),
            OneOfValidator(("a",), True),
            PatternValidator("a|b"),
            NonEmptyValidator(),
            RangeValidator(None, 0.0),
        ),
        recommended_values=("a",),
        aliases=("kk",),
    )
    assert from_proto.config_key(to_proto.config_key(key)) == key
    assert from_proto.config_key(to_proto.config_key(TOPIC)) == TOPIC
