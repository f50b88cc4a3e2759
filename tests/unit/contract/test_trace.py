"""Trace context: nothing without an SDK, the standard form with one, exporters only where they are asked for."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from wherry.connector.v1 import sink_pb2
from wherry.contract import trace
from wherry.contract.telemetry import wanted_exporter

PROCESS_TIMEOUT_S = 120
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def printed_by(code: str, **environment: str) -> str:
    """What a process of its own prints: tracing is set up once in a process, and modules stay loaded."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=PROCESS_TIMEOUT_S,
        env={"PYTHONPATH": ":".join(sys.path), **environment},
    )
    return done.stdout


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
    code = (
        "import sys; from wherry.contract import telemetry, trace\n"
        "stop = telemetry.setup('mine')\n"
        "assert trace.enabled() == ('opentelemetry.sdk' in sys.modules)\n"
        "with trace.span('work'): print(len(trace.current_traceparent()))\n"
        "stop()\n"
    )
    assert printed_by(code) == "0\n"
    on = printed_by(code, OTEL_TRACES_EXPORTER="console")
    assert "55" in on
    assert '"name": "work"' in on
    assert '"service.name": "mine"' in on


@pytest.mark.parametrize(
    "modules", ["wherry.worker.daemon, wherry.worker.lease, wherry.worker.host.server", "wherry.sdk, wherry.sdk.server"]
)
def test_workers_and_sidecars_load_no_sdk_unless_traces_are_asked_for(modules: str) -> None:
    code = (
        f"import sys, {modules}\n"
        "from wherry.contract import telemetry\n"
        "telemetry.setup('x')()\n"
        "telemetry.flush()\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])\n"
    )
    assert printed_by(code) == "[]\n"


def test_a_collector_that_is_away_holds_up_no_end() -> None:
    """Without a limit the exporter tries for 10 s and more."""
    code = (
        "import time; from wherry.contract import telemetry, trace\n"
        "stop = telemetry.setup('mine')\n"
        "with trace.span('work'): pass\n"
        "begun = time.monotonic(); telemetry.flush(0.2); stop()\n"
        "print(time.monotonic() - begun < 9.0)\n"
        "import os, sys; sys.stdout.flush(); os._exit(0)\n"
    )
    assert printed_by(code, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1") == "True\n"


def test_a_span_of_a_call_is_named_by_service_and_method(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, dict[str, object]]] = []

    def span(name: str, **given: object) -> object:
        seen.append((name, dict(given["attributes"])))  # type: ignore[call-overload]
        return contextlib.nullcontext()

    monkeypatch.setattr(trace, "span", span)
    trace.rpc_span(sink_pb2.SinkServiceAlterOffsetsRequest.DESCRIPTOR, SpanKind.CLIENT)
    service = "wherry.connector.v1.SinkService"
    attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": "AlterOffsets"}
    assert seen == [(f"{service}/AlterOffsets", attributes)]
