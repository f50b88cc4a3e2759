"""One trace from a REST call through lease, batches and sidecar, as a collector receives it."""

from __future__ import annotations

import json
import secrets
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

FLOW_TIMEOUT_S = 120.0
LINES = [f"line {number}" for number in range(1000)]
CLASSES = "org.apache.kafka.connect.file"


@dataclass(frozen=True, slots=True)
class Seen:
    """A span that arrived."""

    service: str
    name: str
    kind: int
    trace: str
    span: str
    parent: str
    attributes: Mapping[str, Any]


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what is exported to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[Seen] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            spans = [
                Seen(
                    service,
                    span.name,
                    span.kind,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    _attributes(span.attributes),
                )
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            with self._lock:
                self._spans += spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def spans(self, trace: str = "") -> list[Seen]:
        with self._lock:
            return [span for span in self._spans if trace in ("", span.trace)]

    def named(self, trace: str, name: str) -> list[Seen]:
        return [span for span in self.spans(trace) if span.name == name]

    def close(self) -> None:
        self._server.stop(0.5).wait(30.0)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the standard variables point to."""
    receiver = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.port}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    yield receiver
    receiver.close()


class Flow:
    """Lines of a file into a topic and back into a file, by two connectors with a trace each."""

    def __init__(self, wherry: Standalone, topic: str, folder: Path) -> None:
        self.topic = topic
        self.traces = {"source": secrets.token_hex(16), "sink": secrets.token_hex(16)}
        self.callers = {"source": secrets.token_hex(8), "sink": secrets.token_hex(8)}
        self._wherry = wherry
        self._out = folder / "out.txt"
        given = folder / "in.txt"
        given.write_text("".join(f"{line}\n" for line in LINES))
        file_source = {"connector.class": f"{CLASSES}.FileStreamSourceConnector", "topic": topic, "file": str(given)}
        file_sink = {"connector.class": f"{CLASSES}.FileStreamSinkConnector", "topics": topic, "file": str(self._out)}
        self._configs = {"source": file_source, "sink": file_sink}

    def run(self) -> None:
        for name, config in self._configs.items():
            self._create(name, config)
        arrived = eventually(
            lambda: self._out.is_file() and self._out.read_text().split("\n")[:-1] == LINES, FLOW_TIMEOUT_S
        )
        assert arrived, self._wherry.log_tail()
        # What is committed after a call is of that call's trace, not of the creation's.
        assert eventually(lambda: bool(self._wherry.rest.offsets("source")), FLOW_TIMEOUT_S), self._wherry.log_tail()
        for name in self._configs:
            # A span is exported when it ends, a lease's with the lease.
            self._wherry.rest.call("PUT", f"/connectors/{name}/stop")
            self._wherry.rest.wait_for_states(name, "STOPPED")

    def _create(self, name: str, config: dict[str, str]) -> None:
        request = urllib.request.Request(
            f"{self._wherry.rest.url}/connectors",
            json.dumps({"name": name, "config": config}).encode(),
            {"Content-Type": "application/json", "traceparent": f"00-{self.traces[name]}-{self.callers[name]}-01"},
        )
        with urllib.request.urlopen(request, timeout=90.0) as answer:
            assert answer.status == 201


@pytest.fixture
def flow(collector: Collector, bootstrap: str, topic: str, tmp_path: Path) -> Iterator[Callable[..., Flow]]:
    """Starts Wherry under the variables set until then, runs the flow to its end, and stops Wherry."""

    def run(exported: Callable[[Flow], bool] = lambda flow: True) -> Flow:
        with Standalone(bootstrap=bootstrap) as wherry:
            flow = Flow(wherry, topic, tmp_path)
            flow.run()
            # A process that ends waits for its collector only so long.
            assert eventually(lambda: exported(flow), FLOW_TIMEOUT_S), {span.name for span in collector.spans()}
            wherry.stop()
        return flow

    return run


def has_all(collector: Collector, flow: Flow) -> bool:
    """Whether the spans of both leases and of all lines have come."""

    def lines(trace: str, name: str) -> int:
        return sum(span.attributes["messaging.batch.message_count"] for span in collector.named(trace, name))

    source, sink = flow.traces["source"], flow.traces["sink"]
    batches = ((source, "read batch"), (source, f"send {flow.topic}"), (sink, f"process {flow.topic}"))
    return (
        all(lines(trace, name) >= len(LINES) for trace, name in (*batches, (sink, "write batch")))
        and all(collector.named(trace, "lease") for trace in (source, sink))
        and bool(collector.named(source, "commit"))
    )


def test_a_trace_goes_from_the_rest_call_to_the_sidecar_and_back(
    collector: Collector, flow: Callable[..., Flow]
) -> None:
    done = flow(lambda flow: has_all(collector, flow))

    for name in ("source", "sink"):
        _check_call_and_lease(collector, done, name)
    _check_source_batches(collector, done)
    _check_sink_batches(collector, done)
    _check_unary_calls(collector, done)


def _check_call_and_lease(collector: Collector, done: Flow, name: str) -> None:
    trace = done.traces[name]
    (call,) = collector.named(trace, "POST /connectors")
    assert (call.service, call.parent) == ("wherry-coordinator", done.callers[name])
    assert call.attributes["http.request.method"] == "POST"
    assert call.attributes["http.route"] == "/connectors"
    assert call.attributes["http.response.status_code"] == 201
    (start,) = collector.named(trace, "lease.start")
    assert start.parent == call.span
    (lease,) = collector.named(trace, "lease")
    assert (lease.service, lease.parent) == ("wherry-worker", start.span)
    assert lease.attributes["wherry.connector"] == name


def _check_source_batches(collector: Collector, done: Flow) -> None:
    trace = done.traces["source"]
    (lease,) = collector.named(trace, "lease")
    reads = collector.named(trace, "read batch")
    sends = collector.named(trace, f"send {done.topic}")
    assert {read.parent for read in reads} == {lease.span}
    assert {read.service for read in reads} == {"filestream"}
    assert {send.parent for send in sends} == {read.span for read in reads}
    assert {send.service for send in sends} == {"wherry-worker"}
    for spans in (reads, sends):
        assert sum(span.attributes["messaging.batch.message_count"] for span in spans) == len(LINES)
    assert reads[0].attributes["rpc.system"] == "grpc"
    assert (reads[0].attributes["rpc.service"], reads[0].attributes["rpc.method"]) == (
        "wherry.connector.v1.SourceService",
        "Read",
    )
    assert sends[0].attributes["messaging.system"] == "kafka"
    assert sends[0].attributes["messaging.destination.name"] == done.topic


def _check_sink_batches(collector: Collector, done: Flow) -> None:
    trace = done.traces["sink"]
    (lease,) = collector.named(trace, "lease")
    processed = collector.named(trace, f"process {done.topic}")
    written = collector.named(trace, "write batch")
    assert {span.parent for span in processed} == {lease.span}
    assert {span.parent for span in written} == {span.span for span in processed}
    assert {span.service for span in written} == {"filestream"}
    assert sum(span.attributes["messaging.batch.message_count"] for span in written) == len(LINES)


def _check_unary_calls(collector: Collector, done: Flow) -> None:
    """A call to the sidecar is a span on both sides, the server's below the client's."""
    spans = {span.span: span for span in collector.spans(done.traces["source"])}
    served = [
        span for span in spans.values() if span.name == "wherry.connector.v1.SourceService/Plan" and span.kind == 2
    ]
    assert served
    for span in served:
        caller = spans[span.parent]
        assert (caller.name, caller.kind, caller.service) == (span.name, 3, "wherry-coordinator")
        assert span.service == "filestream"
    assert {span.name for span in spans.values()} >= {"sidecar.acquire", "host.acquire", "plan", "commit"}


def test_nothing_is_exported_when_the_sdk_is_disabled(
    collector: Collector, flow: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    flow()
    assert collector.spans() == []
