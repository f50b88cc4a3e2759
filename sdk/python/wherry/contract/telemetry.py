"""Turns tracing on where the standard OTEL_* variables ask for it.

The OpenTelemetry SDK is imported only then; without it, or without the variables, nothing happens and nothing is paid.
Call `setup` once per process and after any fork: exporters have threads.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

FLUSH_TIMEOUT_S: Final = 2.0

_log = logging.getLogger(__name__)


def wanted_exporter(environment: Mapping[str, str]) -> str:
    """Returns the trace exporter that the environment asks for: otlp, console, or empty for none."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named:
        return "" if named == "none" else named
    endpoints = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return "otlp" if any(environment.get(name) for name in endpoints) else ""


def setup(service_name: str, attributes: Mapping[str, str] | None = None) -> Callable[[], None]:
    """Configures tracing from the environment.

    Args:
        service_name: Name of this process's service; OTEL_SERVICE_NAME wins over it.
        attributes: Further attributes of the resource.

    Returns:
        What sends the remaining spans and stops; call it at the end of the process.
    """
    exporter = wanted_exporter(os.environ)
    if not exporter:
        return _nothing
    try:
        return _install(exporter, service_name, attributes or {})
    except ImportError as error:
        _log.warning(
            "Traces are wanted (%s), but %s is not installed; pip install 'wherry[otlp]' brings it.",
            exporter,
            error.name,
        )
        return _nothing


def flush(timeout_s: float = FLUSH_TIMEOUT_S) -> None:
    """Sends the spans that have ended, as far as time allows: for a process that is about to be ended or to rest."""
    from opentelemetry import trace

    force = getattr(trace.get_tracer_provider(), "force_flush", None)
    if force is not None:
        _within(timeout_s, force)


def _within(timeout_s: float, call: Callable[[], object]) -> None:
    """Runs a call for so long at most: exporters heed no deadline while their collector is away."""
    thread = threading.Thread(target=call, name="flush traces", daemon=True)
    thread.start()
    thread.join(timeout_s)


def _nothing() -> None:
    pass


def _install(exporter: str, service_name: str, attributes: Mapping[str, str]) -> Callable[[], None]:
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    name = os.environ.get("OTEL_SERVICE_NAME") or service_name
    provider = TracerProvider(resource=Resource.create({"service.name": name, **attributes}))
    sink: Any
    if exporter == "console":
        sink = ConsoleSpanExporter()
    elif exporter == "otlp":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        sink = OTLPSpanExporter()
    else:
        _log.warning("OTEL_TRACES_EXPORTER=%s is not known; otlp, console and none are.", exporter)
        return _nothing
    provider.add_span_processor(BatchSpanProcessor(sink))
    trace.set_tracer_provider(provider)
    return lambda: _within(FLUSH_TIMEOUT_S, provider.shutdown)
