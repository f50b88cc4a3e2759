"""The engine's side of a sidecar: every call of the contract as a method over domain types.

Unary calls have a deadline and are repeated by error class (each is idempotent). Streams are thin: they add the
heartbeat, the watch for silence and errors as exceptions, and leave frames, credit and order to their user.
Nothing is connected before the first call, so that a client may be made anywhere but used only after a fork.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import pyarrow as pa
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry.trace import SpanKind

from wherry.connector.v1 import (
    common_pb2,
    plugin_pb2,
    plugin_pb2_grpc,
    sink_pb2,
    sink_pb2_grpc,
    source_pb2,
    source_pb2_grpc,
    transform_pb2,
)
from wherry.contract import from_proto, rpc, to_proto, trace
from wherry.contract.description import ClassDescription, Role, SinkClass
from wherry.contract.errors import TransientError, WherryError
from wherry.contract.frame import ALL_ENCODINGS, Encoding
from wherry.contract.limits import (
    BYTES_UNACKED_MAX,
    FRAME_BYTES_TARGET,
    FRAMES_UNACKED_MAX,
    HELLO_DEADLINE_S,
    MESSAGE_BYTES_MAX,
    REVISION_MAX,
    REVISION_MIN,
    STOP_DEADLINE_S,
    UNARY_DEADLINE_S,
    Limits,
)
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.contract.shared import connector_metadata
from wherry.contract.stream import ApplyStream, ReadStream, WriteStream
from wherry.contract.target import Target

_Response = TypeVar("_Response")


@dataclass(frozen=True, slots=True)
class Hello:
    """A sidecar's introduction.

    Attributes:
        plugin_name: Name of the plugin.
        plugin_version: Its version.
        revision: Revision of the contract chosen.
        features: Features taken up.
        limits: Sizes that hold between both sides.
        encodings: Encodings the sidecar reads and writes, best first.
        instance_id: Instance id from its environment.
        sdk: SDK name and version, for logs.
    """

    plugin_name: str
    plugin_version: str
    revision: int
    features: frozenset[str]
    limits: Limits
    encodings: tuple[Encoding, ...]
    instance_id: str
    sdk: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What validation found about one key.

    Attributes:
        name: Name of the key.
        errors: What is wrong, one sentence each.
        recommended_values: Values to offer.
        visible: Whether a form should show the key.
    """

    name: str
    errors: tuple[str, ...] = ()
    recommended_values: tuple[str, ...] = ()
    visible: bool = True


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a validation; a key that isn't listed is fine.

    Attributes:
        findings: Findings, a key each.
        sink_class: For sinks: the class under this configuration; None means as described.
    """

    findings: tuple[Finding, ...] = ()
    sink_class: SinkClass | None = None

    @property
    def errors(self) -> dict[str, tuple[str, ...]]:
        """What is wrong, by key."""
        return {finding.name: finding.errors for finding in self.findings if finding.errors}


class SidecarClient:
    """Talks to one sidecar. Safe to use from several threads.

    Args:
        endpoint: `unix:///path` or `host:port`.
        message_bytes_max: Largest gRPC message.
        credentials: For TLS.
        sleep: How to wait between attempts; tests pass their own.
        ready: Whether the sidecar is known to listen; one that then can't be reached has ended.
        connector: What calls are about, for a process that plans for several; "" for one of its own.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        credentials: grpc.ChannelCredentials | None = None,
        sleep: Callable[[float], None] = time.sleep,
        ready: bool = False,
        connector: str = "",
    ) -> None:
        self.endpoint = endpoint
        self._metadata: list[tuple[str, Any]] = list(connector_metadata(connector))
        self._owner: SidecarClient | None = None
        self._closed = False
        self._answered = ready
        self._message_bytes_max = message_bytes_max
        self._credentials = credentials
        self._sleep = sleep
        self._channel: grpc.Channel | None = None

    def __enter__(self) -> SidecarClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def channel(self) -> grpc.Channel:
        """The channel, made at first use."""
        if self._owner is not None:
            if self._owner._closed:
                raise self._closed_error()
            return self._owner.channel
        if self._channel is None:
            self._channel = rpc.channel(
                self.endpoint, message_bytes_max=self._message_bytes_max, credentials=self._credentials
            )
        return self._channel

    def about(self, connector: str) -> SidecarClient:
        """Returns a client on the same channel whose calls are about a connector; closing it leaves the channel."""
        client = SidecarClient(
            self.endpoint, message_bytes_max=self._message_bytes_max, sleep=self._sleep, ready=True, connector=connector
        )
        client._owner = self
        return client

    def close(self) -> None:
        """Closes the channel; running streams are cancelled."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    # Plugin

    def healthy(self, *, deadline_s: float = HELLO_DEADLINE_S) -> bool:
        """Tells whether the sidecar says SERVING; False as well when it can't be reached."""
        try:
            stub = health_pb2_grpc.HealthStub(self.channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=deadline_s)
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def hello(self, instance_id: str = "", *, engine_version: str = "", deadline_s: float = HELLO_DEADLINE_S) -> Hello:
        """Introduces the engine and agrees on sizes.

        Raises:
            WherryError: The sidecar can't be reached in time or speaks no common revision.
        """
        mine = Limits(message_bytes_max=self._message_bytes_max)
        request = plugin_pb2.HelloRequest(
            engine_version=engine_version,
            revision_min=REVISION_MIN,
            revision_max=REVISION_MAX,
            limits=to_proto.limits(mine),
            instance_id=instance_id,
        )
        answer = self._call(self._plugin().Hello, request, deadline_s)
        known = (from_proto.known(Encoding, number, None) for number in answer.encodings)
        return Hello(
            answer.plugin_name,
            answer.plugin_version,
            answer.revision,
            frozenset(answer.features),
            mine.meet(from_proto.limits(answer.limits)),
            tuple(encoding for encoding in known if encoding is not None),
            answer.instance_id,
            answer.sdk,
        )

    def describe(self, *, deadline_s: float = UNARY_DEADLINE_S) -> list[ClassDescription]:
        """Asks for the classes of the plugin."""
        answer = self._call(self._plugin().Describe, plugin_pb2.DescribeRequest(), deadline_s)
        return [from_proto.class_description(described) for described in answer.classes]

    def validate_config(
        self,
        class_name: str,
        config: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
        *,
        connect: bool = False,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> Validation:
        """Checks a configuration.

        Args:
            class_name: Class it is for.
            config: All values, secrets left out.
            secrets: Values of PASSWORD keys.
            connect: Whether the other system may be contacted.
            deadline_s: Time for all attempts.
        """
        level = plugin_pb2.VALIDATION_LEVEL_CONNECT if connect else plugin_pb2.VALIDATION_LEVEL_STATIC
        request = plugin_pb2.ValidateConfigRequest(
            class_name=class_name, config=config, secrets=secrets or {}, level=level
        )
        answer = self._call(self._plugin().ValidateConfig, request, deadline_s)
        findings = tuple(
            Finding(
                value.name,
                tuple(value.errors),
                tuple(value.recommended_values),
                value.visible if value.HasField("visible") else True,
            )
            for value in answer.values
        )
        return Validation(findings, from_proto.known(SinkClass, answer.sink_class, None))

    def configure(
        self,
        connector: str,
        class_name: str,
        generation: int,
        config: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
        *,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> None:
        """Binds the process to a connector and generation.

        Raises:
            FencedError: A higher generation was configured before.
        """
        request = plugin_pb2.ConfigureRequest(
            connector=connector, class_name=class_name, generation=generation, config=config, secrets=secrets or {}
        )
        self._call(self._plugin().Configure, request, deadline_s)

    def probe(self, *, deadline_s: float = UNARY_DEADLINE_S) -> str:
        """Asks for a sign of life of the other system; returns what there is to tell."""
        detail: str = self._call(self._plugin().Probe, plugin_pb2.ProbeRequest(), deadline_s).detail
        return detail

    def stop(self, *, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Ends all streams in good order; not repeated, as SIGTERM follows anyway."""
        request = plugin_pb2.StopRequest(deadline_ms=int(deadline_s * 1000))
        self._call_once(self._plugin().Stop, request, deadline_s + 1)

    def on_delete(self, connector: str, *, deadline_s: float = UNARY_DEADLINE_S) -> None:
        """Tells that the connector was deleted."""
        self._call(self._plugin().OnDelete, plugin_pb2.OnDeleteRequest(connector=connector), deadline_s)

    def events(self) -> Iterator[plugin_pb2.EventsResponse]:
        """Subscribes to what the sidecar has to say; ends with the channel, or with the sidecar's next subscriber."""
        return self._stream(self._plugin().Events, plugin_pb2.EventsRequest())

    # Source

    def plan(
        self,
        positions: Sequence[Position] = (),
        tasks_max: int = 1,
        splits_active: Sequence[str] = (),
        splits_max: int = 0,
        *,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> Plan:
        """Asks what there is to do."""
        request = source_pb2.PlanRequest(
            positions=to_proto.positions(positions),
            tasks_max=tasks_max,
            splits_active=splits_active,
            splits_max=splits_max,
        )
        return from_proto.plan(self._call(self._source().Plan, request, deadline_s))

    def watch(self) -> Iterator[str]:
        """Yields a reason whenever the plan would be another; ends with the channel."""
        for change in self._stream(self._source().Watch, source_pb2.WatchRequest()):
            yield change.reason

    def read(
        self,
        *,
        generation: int,
        task: int = 0,
        work: Work,
        split: bool = False,
        positions: Sequence[Position] = (),
        encodings: Sequence[Encoding] = ALL_ENCODINGS,
        credit_frames: int = FRAMES_UNACKED_MAX,
        credit_bytes: int = BYTES_UNACKED_MAX,
        frame_bytes_target: int = FRAME_BYTES_TARGET,
        traceparent: str = "",
    ) -> ReadStream:
        """Opens a Read stream: `open` is sent, `opened` is the first message to come."""
        message = source_pb2.ReadOpen(
            generation=generation,
            task=task,
            work=to_proto.work(work),
            split=split,
            positions=to_proto.positions(positions),
            encodings=[int(encoding) for encoding in encodings],  # type: ignore[misc]
            credit=common_pb2.Credit(frames=credit_frames, bytes=credit_bytes),
            frame_bytes_target=frame_bytes_target,
            traceparent=traceparent or trace.current_traceparent(),
        )
        return ReadStream(self.channel, source_pb2.ReadRequest(open=message), self.endpoint)

    def alter_offsets(
        self,
        role: Role,
        connector: str,
        class_name: str,
        config: Mapping[str, str],
        positions: Sequence[Position],
        secrets: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> bool:
        """Has an operator's change of offsets checked and carried out; returns whether the plugin did everything."""
        members: dict[str, Any] = {
            "connector": connector,
            "class_name": class_name,
            "config": config,
            "secrets": secrets or {},
            "positions": to_proto.positions(positions),
            "validate_only": validate_only,
        }
        handled: bool
        if role is Role.SINK:
            request = sink_pb2.SinkServiceAlterOffsetsRequest(**members)
            handled = self._call(self._sink().AlterOffsets, request, deadline_s).handled
        else:
            handled = self._call(
                self._source().AlterOffsets, source_pb2.AlterOffsetsRequest(**members), deadline_s
            ).handled
        return handled

    # Sink and transform

    def ensure_target(
        self,
        topic: str,
        schema: pa.Schema | None = None,
        *,
        dry_run: bool = False,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> Target:
        """Has the target of a topic made able to take rows of a schema (of key and value); None means no schema."""
        body = b"" if schema is None else schema.serialize().to_pybytes()
        request = sink_pb2.EnsureTargetRequest(topic=topic, schema=body, dry_run=dry_run)
        answer = self._call(self._sink().EnsureTarget, request, deadline_s)
        wanted = pa.ipc.read_schema(pa.py_buffer(answer.schema)) if answer.schema else None
        return Target(answer.target, tuple(answer.actions), wanted)

    def write(
        self,
        *,
        pipeline: str,
        generation: int,
        task: int = 0,
        partitions: Sequence[str] = (),
        encodings: Sequence[Encoding] = ALL_ENCODINGS,
        traceparent: str = "",
    ) -> WriteStream:
        """Opens a Write stream: `open` is sent, `opened` is the first message to come."""
        message = sink_pb2.WriteOpen(
            pipeline=pipeline,
            generation=generation,
            task=task,
            partitions_json=partitions,
            encodings=[int(encoding) for encoding in encodings],  # type: ignore[misc]
            traceparent=traceparent or trace.current_traceparent(),
        )
        return WriteStream(self.channel, sink_pb2.WriteRequest(open=message), self.endpoint)

    def commit(
        self,
        generation: int,
        tokens: Sequence[bytes],
        positions: Sequence[Position] = (),
        *,
        deadline_s: float = UNARY_DEADLINE_S,
    ) -> bool:
        """Has staged data applied; returns whether it had been applied before."""
        request = sink_pb2.CommitRequest(generation=generation, tokens=tokens, positions=to_proto.positions(positions))
        repeated: bool = self._call(self._sink().Commit, request, deadline_s).repeated_commit
        return repeated

    def apply(self, *, generation: int, task: int = 0, encodings: Sequence[Encoding] = ALL_ENCODINGS) -> ApplyStream:
        """Opens an Apply stream: `open` is sent, `opened` is the first message to come."""
        message = transform_pb2.ApplyOpen(
            generation=generation,
            task=task,
            encodings=[int(encoding) for encoding in encodings],  # type: ignore[misc]
        )
        return ApplyStream(self.channel, transform_pb2.ApplyRequest(open=message), self.endpoint)

    # How calls are made

    def _plugin(self) -> Any:
        return plugin_pb2_grpc.PluginServiceStub(self.channel)  # type: ignore[no-untyped-call]  # generated

    def _source(self) -> Any:
        return source_pb2_grpc.SourceServiceStub(self.channel)  # type: ignore[no-untyped-call]  # generated

    def _sink(self) -> Any:
        return sink_pb2_grpc.SinkServiceStub(self.channel)  # type: ignore[no-untyped-call]  # generated

    def _call(self, method: Any, request: Any, deadline_s: float) -> Any:
        """Makes a unary call, again and again within its deadline where its errors allow it."""
        ends = time.monotonic() + deadline_s
        for attempt in rpc.retrying(deadline_s, sleep=self._sleep, in_vain=self._is_over):
            with attempt:
                return self._call_once(method, request, max(0.001, ends - time.monotonic()))
        raise TransientError(f"{self.endpoint}: no attempt was made.")  # not reached: the policy re-raises

    def _call_once(self, method: Any, request: Any, timeout_s: float) -> Any:
        name = type(request).__name__.removesuffix("Request")
        if not trace.enabled():
            return self._invoke(method, request, timeout_s, name, self._metadata)
        with trace.rpc_span(request.DESCRIPTOR, SpanKind.CLIENT):
            return self._invoke(method, request, timeout_s, name, [*self._metadata, *trace.metadata()])

    def _invoke(self, method: Any, request: Any, timeout_s: float, name: str, metadata: list[tuple[str, Any]]) -> Any:
        try:
            answer = method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise self._error(error, name) from error
        except ValueError as error:  # closed by another thread, under the call or before it
            raise self._closed_error() from error
        self._answered = True
        return answer

    def _is_over(self, error: WherryError) -> bool:
        """Whether the process that once answered is gone: the next one has another socket, so calling on is in vain."""
        if error.reason != "UNAVAILABLE" or not self._answered:
            return False
        if self._owner is not None and self._owner._closed:
            return True
        return self.endpoint.startswith("unix:") and not rpc.is_served(self.endpoint)

    def _closed_error(self) -> TransientError:
        return TransientError(f"The line to the sidecar at {self.endpoint} was closed.", reason="UNAVAILABLE")

    def _stream(self, method: Any, request: Any) -> Iterator[Any]:
        try:
            yield from method(request, metadata=trace.metadata())
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:
                raise self._error(error, type(request).__name__.removesuffix("Request")) from error

    def _error(self, error: grpc.RpcError, name: str) -> WherryError:
        return rpc.from_rpc_error(error, f"{name} of the sidecar at {self.endpoint}")
