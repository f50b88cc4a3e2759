"""How topics are created."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.worker.endpoints.topics import TopicRules, TopicSettings

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
    with pytest.raises(ConfigError, match=r"topic\.creation\.default\.replication\.factor must be set"):
        TopicRules.of({"topic.creation.default.partitions": "1"}, {})
