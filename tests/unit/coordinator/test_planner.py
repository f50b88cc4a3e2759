"""Which partitions a sink's topics have, and what a failed plan says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import pytest

from wherry.contract.errors import AuthError, ConfigError, ErrorClass, TransientError
from wherry.contract.position import TopicPartition, kafka_partition_json
from wherry.coordinator import planner as planner_module
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
    ("restored", "parks", "from_start", "caught_up"),
    [
        (True, True, True, {"done", "empty"}),
        (True, True, False, {"done"}),
        (True, False, True, set()),
        (False, True, True, set()),
    ],
)
def test_partitions_without_anything_new_are_told_of_connectors_taken_up_again(
    restored: bool, parks: bool, from_start: bool, caught_up: set[str]
) -> None:
    cluster = Cluster({"done": 5, "empty": 0, "behind": 9, "unread": 3}, {"done": 5, "behind": 8})
    grants = SimpleNamespace(parks=lambda spec: parks, reads_from_start=lambda spec: from_start)
    planner = Planner(None, cluster, grants, lambda event: None, lambda name, values: None)  # type: ignore[arg-type]
    spec = ConnectorSpec("s", Kind.SINK, {"topics": "done,empty,behind,unread"})
    plan = planner.plan(LoadPlan("s", 1, 1, spec, restored=restored), [])
    assert isinstance(plan, SinkPlan)
    assert len(plan.partitions) == 4
    assert plan.caught_up == {kafka_partition_json(topic, 0) for topic in caught_up}


class Sidecars:
    """Sidecars by their class; the first client of one may find its process gone."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.released: list[str] = []
        self.commits: list[tuple[str, tuple[bytes, ...]]] = []
        self.gone = 0

    def acquire(self, sidecar: str, holder: str, *, timeout_s: float) -> SimpleNamespace:
        assert 0 < timeout_s <= planner_module.ACQUIRE_TIMEOUT_S
        self.started.append(sidecar)
        return SimpleNamespace(endpoint=sidecar, id=holder)

    def client(self, endpoint: str, *, ready: bool) -> SimpleNamespace:
        def commit(generation: int, tokens: Sequence[bytes], positions: object, *, deadline_s: float) -> None:
            if self.gone:
                self.gone -= 1
                raise TransientError("It is gone.", reason="UNAVAILABLE")
            self.commits.append((endpoint, tuple(tokens)))

        return SimpleNamespace(commit=commit, close=lambda: None)


def test_what_a_direct_pipeline_staged_is_applied_by_its_sink_which_is_replaced_once_when_it_has_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sidecars = Sidecars()
    monkeypatch.setattr(planner_module, "SidecarClient", sidecars.client)
    monkeypatch.setattr(planner_module, "quietly_release", lambda _, __, holder: sidecars.released.append(holder))
    grants = SimpleNamespace(sink_sidecar=lambda spec, generation: f"sink of {spec.name}")
    planner = Planner(sidecars, None, grants, lambda event: None, lambda name, values: None)  # type: ignore[arg-type]
    spec = ConnectorSpec("p", Kind.SOURCE, {"sink.connector.class": "Staging"})
    planner.apply_tokens(spec, 3, [b"1"], [])
    planner.apply_tokens(spec, 3, [b"2"], [])
    assert sidecars.started == ["sink of p"]
    sidecars.gone = 1
    planner.apply_tokens(spec, 3, [b"3"], [])
    planner.apply_tokens(spec, 4, [b"4"], [])
    assert sidecars.started == ["sink of p"] * 3
    assert [tokens for _, tokens in sidecars.commits] == [(b"1",), (b"2",), (b"3",), (b"4",)]
    assert planner.release("p")
    assert not planner.release("p")
    assert sidecars.released == ["staged-p-3", "staged-p-3", "staged-p-4"]
    sidecars.gone = 2
    with pytest.raises(TransientError):
        planner.apply_tokens(spec, 4, [b"5"], [])
