"""What of a lease is told, when, and what becomes of it once it is committed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Constants, of_value
from wherry.contract.position import Position
from wherry.worker.counts import Counts
from wherry.worker.reports import Reports
from wherry.worker.signals import Phase

A1, A2, B1 = Position("a", "1"), Position("a", "2"), Position("b", "1")


class Desk:
    """A coordinator, a pipeline and a clock."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.done = 0
        self.now = 0.0
        self.committed_to_reader: list[tuple[Position, ...]] = []
        self.reader = SimpleNamespace(trouble="", lag=7, committed=self.committed_to_reader.append)
        self.writer = SimpleNamespace(trouble="")
        pipeline: Any = SimpleNamespace(reader=self.reader, writer=self.writer)
        self.reports = Reports(self, pipeline, Counts(), 10.0, lambda: self.now)

    def report(self, **told: Any) -> int:
        self.told.append(told)
        return len(self.told)

    def committed_seq(self) -> int:
        return self.done

    def members(self, name: str) -> list[Any]:
        return [told[name] for told in self.told]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_reader_hears_of_what_is_committed_once_and_of_each_partition_its_last(desk: Desk) -> None:
    positions: Sequence[Sequence[Position]] = [(A1, B1), (A2,), ()]
    for each in positions:
        desk.reports.tell(Phase.RUNNING, positions=each)
    desk.reports.settle()
    assert (desk.committed_to_reader, desk.reports.waiting) == ([], True)
    desk.done = 2
    desk.reports.settle()
    desk.reports.settle()
    assert (desk.committed_to_reader, desk.reports.waiting) == ([(A2, B1)], False)


def test_a_topic_is_told_once_and_never_of_a_batch_without_rows(desk: Desk) -> None:
    batch = of_value(pa.array([1]), constants=Constants("t"))
    for each in (batch.slice(0, 0), batch, batch):
        desk.reports.note_topics(each)
        desk.reports.tell(Phase.RUNNING)
    assert desk.members("topics") == [(), ("t",), ()]


def test_trouble_makes_a_run_a_retry_and_no_other_phase_another(desk: Desk) -> None:
    desk.writer.trouble = "no answer"
    desk.reports.tell(Phase.RUNNING)
    desk.reports.tell(Phase.DRAINING)
    desk.reports.tell(Phase.RUNNING, trouble="a broken step")
    assert desk.members("phase") == [Phase.RETRYING, Phase.DRAINING, Phase.RETRYING]
    assert desk.members("trouble") == ["no answer", "no answer", "a broken step"]


def test_how_it_goes_is_told_at_an_interval_from_the_last_word(desk: Desk) -> None:
    for desk.now in (0.0, 5.0, 10.0):
        desk.reports.tell_if_due(desk.now, Phase.RUNNING)
    desk.now = 15.0
    desk.reports.tell(Phase.RUNNING, positions=[A1])
    desk.reports.tell_if_due(20.0, Phase.RUNNING)
    assert len(desk.told) == 3
