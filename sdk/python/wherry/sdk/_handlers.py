"""The services of a sidecar as gRPC wants them: each method with its name and the way its messages are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import grpc
from opentelemetry.trace import SpanKind

from wherry.connector.v1 import plugin_pb2, sink_pb2, source_pb2, transform_pb2
from wherry.contract import trace, wire
from wherry.contract.description import Role
from wherry.contract.shared import connector_in
from wherry.sdk._services import PluginService, SinkService, SourceService, TransformService, guarded
from wherry.sdk._sidecar import ABOUT, Sidecar

_PACKAGE: Final = "wherry.connector.v1"


def handlers(sidecar: Sidecar) -> list[grpc.GenericRpcHandler]:
    """Returns the services of a sidecar: the plugin's, and those of the roles its classes have."""
    plugin = PluginService(sidecar)
    made = [
        _service(
            "PluginService",
            {
                "Hello": _unary(plugin.hello, plugin_pb2.HelloRequest),
                "Describe": _unary(plugin.describe, plugin_pb2.DescribeRequest),
                "ValidateConfig": _unary(plugin.validate, plugin_pb2.ValidateConfigRequest),
                "Configure": _unary(plugin.configure, plugin_pb2.ConfigureRequest),
                "Probe": _unary(plugin.probe, plugin_pb2.ProbeRequest),
                "Stop": _unary(plugin.stop, plugin_pb2.StopRequest),
                "OnDelete": _unary(plugin.on_delete, plugin_pb2.OnDeleteRequest),
                "Events": _server_stream(plugin.events, plugin_pb2.EventsRequest),
            },
        )
    ]
    roles = {known.role for known in sidecar.classes}
    if Role.SOURCE in roles:
        source = SourceService(sidecar)
        made.append(
            _service(
                "SourceService",
                {
                    "Plan": _unary(source.plan, source_pb2.PlanRequest),
                    "Watch": _server_stream(source.watch, source_pb2.WatchRequest),
                    "Read": _bidi(source.read, source_pb2.ReadRequest.FromString),
                    "AlterOffsets": _unary(source.alter_offsets, source_pb2.AlterOffsetsRequest),
                },
            )
        )
    if Role.SINK in roles:
        sink = SinkService(sidecar)
        made.append(
            _service(
                "SinkService",
                {
                    "EnsureTarget": _unary(sink.ensure_target, sink_pb2.EnsureTargetRequest),
                    "Write": _bidi(sink.write, wire.deserializer(sink_pb2.WriteRequest.FromString)),
                    "Commit": _unary(sink.commit, sink_pb2.CommitRequest),
                    "AlterOffsets": _unary(sink.alter_offsets, sink_pb2.SinkServiceAlterOffsetsRequest),
                },
            )
        )
    if Role.TRANSFORM in roles:
        request = wire.deserializer(transform_pb2.ApplyRequest.FromString)
        made.append(_service("TransformService", {"Apply": _bidi(TransformService(sidecar).apply, request)}))
    return made


def _service(name: str, methods: Mapping[str, grpc.RpcMethodHandler]) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(f"{_PACKAGE}.{name}", methods)


def _unary(method: Callable[[Any], Any], request_type: Any) -> grpc.RpcMethodHandler:
    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        received = context.invocation_metadata()
        about = ABOUT.set(connector_in(received))
        try:
            if not trace.enabled():
                return guarded(context, lambda: method(request))
            with trace.rpc_span(request_type.DESCRIPTOR, SpanKind.SERVER, trace.traceparent_in(received)):
                return guarded(context, lambda: method(request))
        finally:
            ABOUT.reset(about)

    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_type.FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )


def _server_stream(method: Callable[[Any, Any], Iterator[Any]], request_type: Any) -> grpc.RpcMethodHandler:
    return grpc.unary_stream_rpc_method_handler(
        method,
        request_deserializer=request_type.FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )


def _bidi(method: Callable[[Any, Any], Iterator[Any]], deserializer: Callable[[bytes], Any]) -> grpc.RpcMethodHandler:
    return grpc.stream_stream_rpc_method_handler(
        method, request_deserializer=deserializer, response_serializer=wire.serializer
    )
