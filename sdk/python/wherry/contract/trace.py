"""Trace context: spans by the OpenTelemetry API, carried as W3C traceparent in gRPC metadata and frames.

Only the API is used here. Without a configured SDK (see `telemetry`) spans record nothing, `current_traceparent` is
empty and no metadata is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer

METADATA_KEY: Final = "traceparent"
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


def tracer(name: str) -> Tracer:
    """Returns the tracer of a module; call it where the span starts or at import, both cost little."""
    return trace.get_tracer(name)


def enabled() -> bool:
    """Tells whether spans go anywhere: whether an SDK is configured in this process."""
    return not type(trace.get_tracer_provider()).__module__.startswith("opentelemetry.trace")


def current_traceparent() -> str:
    """Returns the W3C trace context of the current span; empty when there is none."""
    return traceparent_of(trace.get_current_span())


def traceparent_of(span: Span) -> str:
    """Returns the W3C trace context of a span; empty when it has none."""
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def context_of(traceparent: str) -> Context:
    """Returns a context whose spans are children of a remote span; the current one for an empty or damaged text."""
    match = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if match is None:
        return otel_context.get_current()
    remote = SpanContext(
        int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=TraceFlags(int(match[3], 16))
    )
    return trace.set_span_in_context(NonRecordingSpan(remote))


@contextmanager
def span(
    name: str,
    *,
    parent: str = "",
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int | float | bool] | None = None,
) -> Iterator[Span]:
    """Runs a block inside a span, which is current within it; an exception is recorded and goes on.

    Args:
        name: Name of the span.
        parent: traceparent of its parent; empty means the current span.
        kind: Client, server or internal.
        attributes: Attributes known at the start.
    """
    with tracer("wherry").start_as_current_span(
        name, context_of(parent), kind, attributes, record_exception=True, set_status_on_exception=False
    ) as running:
        try:
            yield running
        except Exception as error:
            running.set_status(Status(StatusCode.ERROR, str(error)[:256]))
            raise


def started(
    name: str,
    *,
    parent: str = "",
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int | float | bool] | None = None,
) -> Span:
    """Returns a span that is current nowhere; the caller ends it. For work that changes threads, such as a stream's."""
    return tracer("wherry").start_span(name, context_of(parent), kind, attributes)


def rpc_attributes(service: str, method: str) -> dict[str, str | int | float | bool]:
    """Returns the attributes that OpenTelemetry's conventions ask of a span of a gRPC call."""
    return {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}


def rpc_span(request: Any, kind: SpanKind, parent: str = "") -> AbstractContextManager[Span]:
    """Runs a block inside the span of a gRPC call.

    Args:
        request: Descriptor of the call's request message; each call has one of its own.
        kind: Client or server.
        parent: traceparent of its parent; empty means the current span.
    """
    for service in request.file.services_by_name.values():
        for method in service.methods:
            if method.input_type.full_name == request.full_name:
                attributes = rpc_attributes(service.full_name, method.name)
                return span(f"{service.full_name}/{method.name}", parent=parent, kind=kind, attributes=attributes)
    return span(request.full_name, parent=parent, kind=kind)


def metadata(traceparent: str = "") -> list[tuple[str, str]]:
    """Returns the gRPC metadata that carries a trace context: the one given, else the current; empty for none."""
    traceparent = traceparent or current_traceparent()
    return [(METADATA_KEY, traceparent)] if traceparent else []


def traceparent_in(received: Sequence[tuple[str, Any]] | None) -> str:
    """Returns the trace context in gRPC metadata; empty when there is none."""
    return next((str(value) for key, value in received or () if key == METADATA_KEY), "")
