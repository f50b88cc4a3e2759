"""A broker and a sidecar inside the test's own process: librdkafka's mock cluster, and a gRPC server on a socket."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from confluent_kafka import Producer
from tests.support.natively import both_ways, helper

from wherry.connector.v1 import sink_pb2, source_pb2
from wherry.contract import wire
from wherry.contract.client import SidecarClient
from wherry.contract.limits import MESSAGE_BYTES_MAX

__all__ = ["both_ways", "helper"]

# Answers to the requests of one stream.
Script = Callable[[Iterator[Any]], Iterator[Any]]


class MockCluster:
    """Brokers that live as long as one producer."""

    def __init__(self) -> None:
        self.producer = Producer(
            {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "linger.ms": 0, "log_level": 0}
        )
        broker = next(iter(self.producer.list_topics(timeout=60).brokers.values()))
        self.bootstrap = f"{broker.host}:{broker.port}"

    def produce(self, topic: str, *values: bytes | None, partition: int = 0, **more: object) -> None:
        for value in values:
            self.producer.produce(topic, value, partition=partition, **more)  # type: ignore[arg-type]
        assert self.producer.flush(60) == 0


@pytest.fixture
def cluster() -> MockCluster:
    return MockCluster()


class ScriptedSidecar:
    """A sidecar inside the process whose streams are generators of the test."""

    def __init__(self, folder: Path) -> None:
        self._server = grpc.server(
            futures.ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        )
        self._endpoint = f"unix://{folder}/s"
        self.client: SidecarClient | None = None

    def start(self, *, read: Script | None = None, write: Script | None = None) -> SidecarClient:
        for service, method, script, request in (
            ("Source", "Read", read, source_pb2.ReadRequest),
            ("Sink", "Write", write, sink_pb2.WriteRequest),
        ):
            if script is not None:
                parse = wire.deserializer(request.FromString) if method == "Write" else request.FromString
                handler = grpc.stream_stream_rpc_method_handler(_serve(script), parse, wire.serializer)
                name = f"wherry.connector.v1.{service}Service"
                generic = grpc.method_handlers_generic_handler(name, {method: handler})
                self._server.add_generic_rpc_handlers((generic,))
        self._server.add_insecure_port(self._endpoint)
        self._server.start()
        self.client = SidecarClient(self._endpoint)
        return self.client

    def stop(self) -> None:
        if self.client is not None:
            self.client.close()
        self._server.stop(0).wait(30)


def _serve(script: Script) -> Callable[[Iterator[Any], Any], Iterator[Any]]:
    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield from script(requests)

    return serve


@pytest.fixture
def sidecar() -> Iterator[ScriptedSidecar]:
    # A socket's path has at most 107 bytes, which a test's own folder may exceed.
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        scripted = ScriptedSidecar(Path(folder))
        yield scripted
        scripted.stop()
