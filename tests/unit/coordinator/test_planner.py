"""Which partitions a sink's topics have, and what a failed plan says."""

from __future__ import annotations

import pytest

from wherry.contract.errors import AuthError, ConfigError, ErrorClass
from wherry.contract.position import kafka_partition_json
from wherry.coordinator.planner import failure_of, partitions_of

TOPICS = {"orders": 2, "orders-eu": 1, "other": 1}


def test_listed_topics_are_taken_in_order() -> None:
    assert partitions_of({"topics": "other, orders"}, TOPICS) == (
        kafka_partition_json("orders", 0),
        kafka_partition_json("orders", 1),
        kafka_partition_json("other", 0),
    )


def test_a_topic_that_does_not_exist_yet_has_no_partitions() -> None:
    assert partitions_of({"topics": "missing"}, TOPICS) == ()


def test_a_regex_matches_whole_names() -> None:
    assert partitions_of({"topics.regex": "orders"}, TOPICS) == partitions_of({"topics": "orders"}, TOPICS)
    assert len(partitions_of({"topics.regex": "orders.*"}, TOPICS)) == 3


def test_a_regex_is_javas() -> None:
    assert len(partitions_of({"topics.regex": r"\Qorders\E(-\p{Lower}+)?"}, TOPICS)) == 3


def test_a_regex_that_is_none_is_told_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \( for configuration topics\.regex") as wrong:
        partitions_of({"topics.regex": "("}, TOPICS)
    assert wrong.value.key == "topics.regex"


def test_a_failure_keeps_the_class_of_its_error() -> None:
    assert failure_of(AuthError("refused")).error_class is ErrorClass.AUTH


def test_an_unforeseen_error_is_a_bug_that_names_its_type() -> None:
    failure = failure_of(KeyError("x"))
    assert (failure.error_class, failure.message) == (ErrorClass.BUG, "KeyError: 'x'")
