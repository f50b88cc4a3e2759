"""Traces by connector."""

from __future__ import annotations

from wherry.contract import trace
from wherry.coordinator.traces import Traces

FIRST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECOND = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def follow(traces: Traces, connector: str, parent: str) -> None:
    with trace.span("call", parent=parent):
        traces.follow(connector)


def test_work_belongs_to_the_last_call_that_had_a_trace() -> None:
    traces = Traces()
    follow(traces, "a", FIRST)
    follow(traces, "a", SECOND)
    traces.follow("a")
    assert (traces.parent("a"), traces.parent("b")) == (SECOND, "")


def test_a_deleted_connector_leaves_nothing() -> None:
    traces = Traces()
    follow(traces, "a", FIRST)
    traces.forget("a")
    traces.forget("a")
    assert traces.parent("a") == ""
