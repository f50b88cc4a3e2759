"""How topics are created."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.topic_creation import TopicRules, TopicSettings

DEFAULT = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "-1"}


def rules(**config: str) -> TopicRules:
    made = TopicRules.of({**DEFAULT, **{f"topic.creation.{key}": value for key, value in config.items()}}, {})
    assert made is not None
    return made


def test_without_rules_or_when_switched_off_the_broker_creates() -> None:
    assert TopicRules.of({}, {}) is None
    assert TopicRules.of(DEFAULT, {"topic.creation.enable": "false"}) is None


def test_the_default_group_takes_the_rest() -> None:
    assert rules().settings("t") == TopicSettings(3, -1, {})


def test_the_first_group_that_matches_wins_and_takes_missing_numbers_from_the_default() -> None:
    made = rules(**{
        "groups": "small, compact",
        "small.include": "s.*", "small.exclude": "sx", "small.partitions": "1",
        "compact.include": ".*x", "compact.cleanup.policy": "compact",
    })  # fmt: skip
    assert made.settings("sa") == TopicSettings(1, -1, {})
    assert made.settings("sx") == TopicSettings(3, -1, {"cleanup.policy": "compact"})
    assert made.settings("other") == TopicSettings(3, -1, {})


def test_a_default_group_without_its_numbers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'configuration "topic\.creation\.default\.replication\.factor"'):
        TopicRules.of({"topic.creation.default.partitions": "1"}, {})


@pytest.mark.parametrize("key", ["groups", "default.cleanup.policy", "a.include", "nonsense"])
def test_any_key_asks_for_the_numbers_of_the_default_group(key: str) -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "topic\.creation\.default\.replication'):
        TopicRules.of({f"topic.creation.{key}": "a"}, {})


def test_a_group_takes_no_settings_from_the_default_one() -> None:
    made = rules(**{"default.cleanup.policy": "compact", "groups": "a", "a.include": ".*", "a.segment.bytes": "9"})
    assert made.settings("t") == TopicSettings(3, -1, {"segment.bytes": "9"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"default.partitions": "0"}, "Invalid value 0 for configuration topic.creation.default.partitions"),
        ({"default.replication.factor": "-2"}, "or -1 to use the broker's default"),
        ({"default.partitions": "many"}, "Not a number of type INT"),
        ({"default.partitions": ""}, "Not a number of type INT"),
        ({"default.partitions": "1_0"}, "Not a number of type INT"),
        ({"default.partitions": "2147483648"}, "Not a number of type INT"),
        ({"default.replication.factor": "40000"}, "Not a number of type SHORT"),
        ({"groups": "g", "g.include": "a(b"}, "topic.creation.g.include: Invalid regex: Unclosed group"),
        ({"groups": "g", "g.include": "a", "g.partitions": "0"}, "configuration topic.creation.g.partitions"),
    ],
)
def test_rules_that_can_not_be_are_refused_before_any_topic_is_made(config: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        rules(**config)
    assert told in refused.value.message


def test_a_group_without_include_takes_no_topic() -> None:
    assert rules(**{"groups": "g", "g.partitions": "9"}).settings("t") == TopicSettings(3, -1, {})


def test_expressions_are_javas() -> None:
    made = rules(**{"groups": "g", "g.include": r"\Qa.b\E, \p{Digit}+", "g.partitions": "9"})
    assert [made.settings(topic).partitions for topic in ("a.b", "axb", "123")] == [9, 3, 9]
