"""Trace context: nothing without an SDK, the standard form with one, exporters only where they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from wherry.contract import trace
from wherry.contract.telemetry import wanted_exporter

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_without_a_span_nothing_is_carried() -> None:
    assert trace.current_traceparent() == ""
    assert trace.metadata() == []


def test_a_context_goes_out_as_it_came_in() -> None:
    context = trace.context_of(PARENT)
    assert trace.traceparent_of(otel.get_current_span(context)) == PARENT


@pytest.mark.parametrize("damaged", ["", "x", PARENT[:-1], PARENT.upper()])
def test_a_damaged_context_is_none(damaged: str) -> None:
    assert trace.traceparent_of(otel.get_current_span(trace.context_of(damaged))) == ""


def test_a_span_without_sdk_hands_its_parent_on() -> None:
    with trace.span("x", parent=PARENT):
        assert trace.current_traceparent() == PARENT
        assert trace.metadata() == [("traceparent", PARENT)]


def test_an_exception_passes_through_a_span() -> None:
    with pytest.raises(KeyError), trace.span("x"):
        raise KeyError("x")


def test_a_context_is_found_in_metadata() -> None:
    assert trace.traceparent_in([("a", "b"), ("traceparent", PARENT)]) == PARENT
    assert trace.traceparent_in(None) == ""


def test_a_span_context_prints_its_flags() -> None:
    span = NonRecordingSpan(SpanContext(1, 2, False, TraceFlags(0)))
    assert trace.traceparent_of(span) == f"00-{1:032x}-{2:016x}-00"


@pytest.mark.parametrize(
    ("environment", "exporter"),
    [
        ({}, ""),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "otlp"}, ""),
    ],
)
def test_exporters_follow_the_standard_variables(environment: dict[str, str], exporter: str) -> None:
    assert wanted_exporter(environment) == exporter


def test_the_console_exporter_prints_spans_and_nothing_is_loaded_without_it() -> None:
    """In a process of its own: the provider of a process can be set once only."""
    code = (
        "import sys; from wherry.contract import telemetry, trace\n"
        "stop = telemetry.setup('mine')\n"
        "assert trace.enabled() == ('opentelemetry.sdk' in sys.modules)\n"
        "with trace.span('work'): print(len(trace.current_traceparent()))\n"
        "stop()\n"
    )
    off = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert off.stdout == "0\n"
    on = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"OTEL_TRACES_EXPORTER": "console", "PYTHONPATH": ":".join(sys.path)},
    )
    assert "55" in on.stdout
    assert '"name": "work"' in on.stdout
    assert '"service.name": "mine"' in on.stdout
