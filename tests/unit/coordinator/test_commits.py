"""Positions of sources go to the store, positions of sinks to their group; transient failures are tried again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from wherry.contract.errors import AuthError, FencedError, TransientError, WherryError
from wherry.contract.plan import Work
from wherry.contract.position import Position, TopicPartition, kafka_partition_json, kafka_position
from wherry.coordinator.commits import COMMIT_ATTEMPTS_MAX, PositionKeeper, group_of
from wherry.coordinator.events import ConnectorSpec, Kind, TaskWork
from wherry.coordinator.staged import Staged, is_entry

SOURCE = ConnectorSpec("src", Kind.SOURCE, {})
SINK = ConnectorSpec("snk", Kind.SINK, {})
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Offsets:
    def __init__(self) -> None:
        self.kept: dict[str, str] = {"a": "1", "b": "2"}
        self.failures: list[WherryError] = []

    def load(self, connector: str) -> list[Position]:
        return [Position(p, o) for p, o in self.kept.items()]

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        for position in positions:
            self.kept[position.partition] = position.offset or ""

    def reset(self, connector: str) -> None:
        self.kept.clear()


class Kafka:
    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, int]] = {"connect-snk": {A: 10, B: 20}}

    def group_offsets(self, group: str, partitions: Any = None) -> dict[TopicPartition, int]:
        found = self.groups.get(group, {})
        return {p: o for p, o in found.items() if partitions is None or p in partitions}

    def commit_group(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.groups.setdefault(group, {}).update(offsets)

    def delete_group(self, group: str) -> None:
        self.groups.pop(group, None)


class Desk:
    def __init__(self) -> None:
        self.offsets, self.kafka = Offsets(), Kafka()
        self.waits: list[float] = []
        self.keeper = PositionKeeper(self.offsets, self.kafka, sleep=self.waits.append)  # type: ignore[arg-type]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_source_task_gets_the_positions_it_named_in_its_order(desk: Desk) -> None:
    work = TaskWork(Work("0", partitions=("b", "new", "a")))
    assert desk.keeper.load_for(SOURCE, work) == [Position("b", "2"), Position("new", None), Position("a", "1")]


def test_a_source_task_that_names_none_gets_all(desk: Desk) -> None:
    assert desk.keeper.load_for(SOURCE, TaskWork(Work("0"))) == [Position("a", "1"), Position("b", "2")]


def test_a_sink_task_gets_what_its_group_has_committed(desk: Desk) -> None:
    work = TaskWork(partitions=(kafka_partition_json("t", 1), kafka_partition_json("u", 0)))
    assert desk.keeper.load_for(SINK, work) == [kafka_position("t", 1, 20), kafka_position("u", 0, None)]


def test_a_commit_of_a_sink_goes_to_its_group(desk: Desk) -> None:
    desk.keeper.commit(SINK, [kafka_position("t", 0, 11)])
    assert desk.kafka.groups["connect-snk"] == {A: 11, B: 20}


def test_the_group_may_be_overridden() -> None:
    assert group_of("snk", {"consumer.override.group.id": "mine"}) == "mine"


def test_a_transient_failure_is_tried_again_with_growing_waits(desk: Desk) -> None:
    desk.offsets.failures = [TransientError("full")] * 3
    desk.keeper.commit(SOURCE, [Position("a", "9")])
    assert desk.offsets.kept["a"] == "9"
    assert desk.waits == [0.25, 0.5, 1.0]


def test_a_lasting_failure_is_raised_in_the_end(desk: Desk) -> None:
    desk.offsets.failures = [TransientError("full")] * COMMIT_ATTEMPTS_MAX
    with pytest.raises(TransientError):
        desk.keeper.commit(SOURCE, [Position("a", "9")])


def test_a_refusal_is_raised_at_once(desk: Desk) -> None:
    desk.offsets.failures = [AuthError("no")]
    with pytest.raises(AuthError):
        desk.keeper.commit(SOURCE, [Position("a", "9")])
    assert desk.waits == []


def test_forgetting_one_partition_of_a_sink_keeps_the_others(desk: Desk) -> None:
    desk.keeper.alter(SINK, [kafka_position("t", 0, None)])
    assert desk.kafka.groups["connect-snk"] == {B: 20}


def test_the_others_are_kept_through_a_broker_that_does_not_answer_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, failures = desk.kafka.commit_group, [TransientError("no answer in time")] * 2

    def failing(group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if failures:
            raise failures.pop()
        commit(group, offsets)

    monkeypatch.setattr(desk.kafka, "commit_group", failing)
    desk.keeper.alter(SINK, [kafka_position("t", 0, None)])
    assert desk.kafka.groups["connect-snk"] == {B: 20}


def test_resetting_a_sink_forgets_its_group(desk: Desk) -> None:
    desk.keeper.alter(SINK, None)
    assert desk.keeper.load(SINK) == []


def test_resetting_a_source_forgets_its_positions(desk: Desk) -> None:
    desk.keeper.alter(SOURCE, None)
    assert desk.keeper.load(SOURCE) == []


def test_what_a_transaction_has_stored_is_not_written_over_by_a_report(desk: Desk) -> None:
    desk.keeper.commit(SOURCE, [Position("a", "0")], in_transaction=True)
    assert desk.keeper.load(SOURCE) == [Position("a", "1"), Position("b", "2")]


def test_what_is_forgotten_is_forgotten_only_when_what_stands_beside_it_is_stored(desk: Desk) -> None:
    desk.offsets.failures.append(AuthError("no"))
    with pytest.raises(AuthError):
        desk.keeper.commit(SOURCE, [Position("a", None), Position("file", "finished")])
    assert desk.offsets.kept["a"] == "1"
    desk.keeper.commit(SOURCE, [Position("a", None), Position("file", "finished")])
    assert (desk.offsets.kept["a"], desk.offsets.kept["file"]) == ("", "finished")


def test_positions_of_a_sink_stay_where_they_are_once_another_coordinator_leads():
    desk = Desk()

    def refuse() -> None:
        raise FencedError("another one leads")

    keeper = PositionKeeper(desk.offsets, desk.kafka, may_write=refuse)  # type: ignore[arg-type]
    position = kafka_position("t", 0, 5)
    for write in (
        lambda: keeper.commit(SINK, [position]),
        lambda: keeper.alter(SINK, [position]),
        lambda: keeper.alter(SINK, None),
    ):
        with pytest.raises(FencedError):
            write()
    assert (desk.kafka.groups, desk.offsets.kept) == ({"connect-snk": {A: 10, B: 20}}, {"a": "1", "b": "2"})


def staged() -> Position:
    return Staged("src-0-3-1", 3, (b"token",), (Position("a", "9"),)).position()


def test_what_a_direct_pipelines_sink_has_staged_is_no_position(desk: Desk) -> None:
    desk.offsets.write("src", [staged()])
    assert desk.keeper.load(SOURCE) == [Position("a", "1"), Position("b", "2")]
    assert desk.keeper.load_for(SOURCE, TaskWork(Work("0"))) == [Position("a", "1"), Position("b", "2")]


def test_who_alters_the_offsets_of_a_direct_pipeline_drops_what_belongs_to_the_old_ones(desk: Desk) -> None:
    desk.offsets.write("src", [staged()])
    desk.keeper.alter(SOURCE, [Position("a", "5")])
    assert desk.offsets.kept == {"a": "5", "b": "2", staged().partition: ""}


def test_a_position_whose_partition_only_looks_like_an_entry_stays_one() -> None:
    assert is_entry(staged())
    assert not is_entry(Position('{"wherry.staged":"l","table":"t"}', "1"))
    assert not is_entry(Position('"wherry.staged"', "1"))
