"""Calls of a sidecar by name, with requests and answers as plain mappings.

The runner looks at a sidecar through the generated messages alone, so that a mistake in the engine's own client can't
hide one in a sidecar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import grpc
from google.protobuf import json_format, message_factory  # type: ignore[import-untyped]  # it publishes no types
from google.protobuf.message import Message  # type: ignore[import-untyped]
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from wherry.conformance.failure import Failure, UsageError
from wherry.connector.v1 import plugin_pb2, sink_pb2, source_pb2, transform_pb2

ERROR_DOMAIN: Final = "wherry.dev"
DETAILS_KEY: Final = "grpc-status-details-bin"
CALL_DEADLINE_S: Final = 30.0
MESSAGE_BYTES_MAX: Final = 17 * 1024 * 1024
OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", 50),
    # How long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5000),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Every case talks to its own process, though the path of a socket may come back.
    ("grpc.use_local_subchannel_pool", 1),
)
FILES: Final = (plugin_pb2, source_pb2, sink_pb2, transform_pb2)


class Wire:
    """A connection to one sidecar. Made after the process listens; closed by whoever made it."""

    def __init__(self, endpoint: str) -> None:
        self._channel = grpc.insecure_channel(endpoint.replace("unix://", "unix:", 1), options=OPTIONS)

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self._channel.close()

    def health(self, deadline_s: float) -> str:
        """Returns the name of the health status of the whole server."""
        check = health_pb2_grpc.HealthStub(self._channel).Check
        answer = check(health_pb2.HealthCheckRequest(), timeout=deadline_s, wait_for_ready=True)
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))

    def call(
        self,
        name: str,
        request: Mapping[str, Any] | Message,
        deadline_s: float = CALL_DEADLINE_S,
        metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> Any:
        """Makes a unary call.

        Args:
            name: Service and method, such as "PluginService.Hello".
            request: The request, as a message or as a mapping with the proto's field names.
            deadline_s: Time that the call may take.
            metadata: What goes along.

        Returns:
            The answer's message.

        Raises:
            grpc.RpcError: The sidecar answered with a status.
            UsageError: There is no such call, or the request doesn't fit it.
        """
        method = _method(name)
        request_class = message_factory.GetMessageClass(method.input_type)
        answer_class = message_factory.GetMessageClass(method.output_type)
        message = request if isinstance(request, Message) else parse(request_class(), request)
        stub = self._channel.unary_unary(_path(method), request_class.SerializeToString, answer_class.FromString)
        return stub(message, timeout=deadline_s, wait_for_ready=True, metadata=tuple(metadata))

    def stream(self, name: str, requests: Iterator[Message]) -> Any:
        """Opens a bidirectional stream and returns the call, which iterates over answers."""
        method = _method(name)
        request_class = message_factory.GetMessageClass(method.input_type)
        answer_class = message_factory.GetMessageClass(method.output_type)
        stub = self._channel.stream_stream(_path(method), request_class.SerializeToString, answer_class.FromString)
        return stub(requests, wait_for_ready=True)

    def subscribe(self, name: str, request: Mapping[str, Any], deadline_s: float) -> Any:
        """Opens a stream of answers to one request and returns the call."""
        method = _method(name)
        request_class = message_factory.GetMessageClass(method.input_type)
        answer_class = message_factory.GetMessageClass(method.output_type)
        stub = self._channel.unary_stream(_path(method), request_class.SerializeToString, answer_class.FromString)
        return stub(parse(request_class(), request), timeout=deadline_s, wait_for_ready=True)


def parse(message: Any, values: Mapping[str, Any]) -> Any:
    """Fills a message from a mapping with the proto's field names.

    Raises:
        UsageError: The mapping doesn't fit the message.
    """
    try:
        return json_format.ParseDict(dict(values), message)
    except json_format.ParseError as error:
        raise UsageError(f"{message.DESCRIPTOR.name} can't be made of {values!r}: {error}.") from error


def plain(message: Message) -> dict[str, Any]:
    """Returns a message as a mapping, with the proto's field names and without unset fields."""
    return dict(json_format.MessageToDict(message, preserving_proto_field_name=True))


def error_class(error: grpc.RpcError) -> str | None:
    """Returns the error class that a status carries, such as "FENCED"; None when it carries none."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_KEY:
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == ERROR_DOMAIN:
                return str(info.reason)
    return None


def expect_error(error: grpc.RpcError, allowed: list[str]) -> None:
    """Checks that a status is of one of some error classes; "any" allows every class.

    Raises:
        Failure: It is of another class or carries none.
    """
    found = error_class(error)
    if found is None:
        raise Failure(
            f"The status {error.code().name} ({error.details()}) carries no google.rpc.ErrorInfo of the domain "
            f"{ERROR_DOMAIN}, so the engine can't tell what to do."
        )
    if "any" not in allowed and found not in allowed:
        raise Failure(f"The error is of the class {found} ({error.details()}) and not {' or '.join(allowed)}.")
    if not (error.details() or "").strip():
        raise Failure(f"The error of the class {found} has no text for a person.")


def _method(name: str) -> Any:
    service, _, method = name.partition(".")
    for file in FILES:
        found = file.DESCRIPTOR.services_by_name.get(service)
        if found and method in found.methods_by_name:
            return found.methods_by_name[method]
    raise UsageError(f"The contract has no call {name}.")


def _path(method: Any) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"
