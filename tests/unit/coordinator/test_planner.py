"""Which partitions a sink's topics have, and what a failed plan says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import pytest

from wherry.contract.errors import AuthError, ConfigError, ErrorClass
from wherry.contract.position import TopicPartition, kafka_partition_json
from wherry.coordinator.effects import LoadPlan
from wherry.coordinator.events import ConnectorSpec, Kind, SinkPlan
from wherry.coordinator.planner import Planner, failure_of, partitions_of

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


class Cluster:
    """Kafka as far as a sink's plan asks it."""

    def __init__(self, ends: dict[str, int], stands: dict[str, int]) -> None:
        self.ends, self.stands = ends, stands

    def topics(self) -> dict[str, int]:
        return dict.fromkeys(self.ends, 1)

    def group_members(self, group: str) -> list[str]:
        return []

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.ends[each.topic] for each in partitions}

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.stands[each.topic] for each in partitions if each.topic in self.stands}


@pytest.mark.parametrize(
    ("restored", "parks", "caught_up"),
    [(True, True, {"done", "empty"}), (True, False, set()), (False, True, set())],
)
def test_partitions_without_anything_new_are_told_of_connectors_taken_up_again(
    restored: bool, parks: bool, caught_up: set[str]
) -> None:
    cluster = Cluster({"done": 5, "empty": 0, "behind": 9, "unread": 3}, {"done": 5, "behind": 8})
    grants = SimpleNamespace(parks=lambda spec: parks)
    planner = Planner(None, cluster, grants, lambda event: None, lambda name, values: None)  # type: ignore[arg-type]
    spec = ConnectorSpec("s", Kind.SINK, {"topics": "done,empty,behind,unread"})
    plan = planner.plan(LoadPlan("s", 1, 1, spec, restored=restored), [])
    assert isinstance(plan, SinkPlan)
    assert len(plan.partitions) == 4
    assert plan.caught_up == {kafka_partition_json(topic, 0) for topic in caught_up}
