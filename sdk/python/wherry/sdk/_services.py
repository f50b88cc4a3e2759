"""The gRPC edge of a sidecar: messages in, the author's classes, messages out.

Streams get objects and threads of their own. An exception becomes a status with the class of the error; one that
isn't of the contract is a BUG, and its trace goes to the log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import grpc

from wherry.connector.v1 import plugin_pb2, sink_pb2, source_pb2
from wherry.contract import from_proto, rpc, to_proto
from wherry.contract.config import ConfigType
from wherry.contract.description import Role, SinkClass
from wherry.contract.errors import ConfigError, ConnectorBugError, FencedError, WherryError
from wherry.contract.frame import ALL_ENCODINGS, Encoding
from wherry.contract.limits import REVISION_MAX, REVISION_MIN, Limits
from wherry.contract.wire import WireFrame
from wherry.sdk import _columns as _columns  # loaded before the first stream, not within it
from wherry.sdk._applying import Applying
from wherry.sdk._events import ConnectorEvents
from wherry.sdk._intake import told
from wherry.sdk._reading import Reading
from wherry.sdk._sidecar import ABOUT, Bound, Sidecar, Stream
from wherry.sdk._writing import Writing
from wherry.sdk.plan import Offsets, to_contract
from wherry.sdk.plugin import Context, Findings
from wherry.sdk.sink import Sink
from wherry.sdk.source import Source

SDK_VERSION: Final = "0.1.0"
SDK: Final = f"wherry-python {SDK_VERSION}"
_WATCH_POLL_S: Final = 1.0
_log = logging.getLogger("wherry.sdk")

_Answer = TypeVar("_Answer")


def guarded(context: grpc.ServicerContext, call: Callable[[], _Answer]) -> _Answer:
    """Runs a unary call; an exception becomes its status."""
    try:
        return call()
    except Exception as error:
        _report(error)
        rpc.abort(context, told(error))
        raise  # not reached: abort raises


def _report(error: BaseException) -> None:
    if not isinstance(error, WherryError):
        text = "".join(traceback.format_exception(error))
        _log.error("The connector raised an exception it should not:\n%s", text)


class PluginService:
    """PluginService over the author's classes."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def hello(self, request: plugin_pb2.HelloRequest) -> plugin_pb2.HelloResponse:
        """Agrees on revision, encodings and limits."""
        revision = min(request.revision_max or REVISION_MAX, REVISION_MAX)
        if revision < max(request.revision_min, REVISION_MIN):
            raise ConfigError(
                f"The engine speaks the revisions {request.revision_min} to {request.revision_max} of the contract, "
                f"{SDK} speaks {REVISION_MIN} to {REVISION_MAX}."
            )
        sidecar = self._sidecar
        sidecar.limits = sidecar.limits.meet(from_proto.limits(request.limits))
        return plugin_pb2.HelloResponse(
            plugin_name=sidecar.name,
            plugin_version=sidecar.version,
            revision=revision,
            limits=to_proto.limits(sidecar.limits),
            encodings=[int(encoding) for encoding in ALL_ENCODINGS],  # type: ignore[misc]
            instance_id=sidecar.instance_id,
            sdk=SDK,
        )

    def describe(self, _: plugin_pb2.DescribeRequest) -> plugin_pb2.DescribeResponse:
        """Tells the classes."""
        described = [to_proto.class_description(plugin.describe()) for plugin in self._sidecar.classes]
        return plugin_pb2.DescribeResponse(classes=described)

    def validate(self, request: plugin_pb2.ValidateConfigRequest) -> plugin_pb2.ValidateConfigResponse:
        """Checks a configuration: each key by itself, then, when all are fine, together."""
        plugin = self._sidecar.find(request.class_name)
        values = {**request.config, **request.secrets}
        definition = plugin.definition()
        findings = {name: Findings(tuple(errors)) for name, errors in definition.validate(values).items() if errors}
        sink_class: SinkClass | None = None
        if not findings:
            config = plugin.config_type.parse(values)
            connect = request.level == plugin_pb2.VALIDATION_LEVEL_CONNECT
            findings = {name: _findings(found) for name, found in plugin.validate(config, connect).items()}
            # Values that don't go together mean nothing to an author's method: it would fail, and hide what was found.
            if issubclass(plugin, Sink) and not any(found.errors for found in findings.values()):
                sink_class = plugin.sink_class_of(config)
        hidden = {known.name for known in definition.keys if known.type is ConfigType.PASSWORD}
        return plugin_pb2.ValidateConfigResponse(
            values=[
                plugin_pb2.ConfigValue(
                    name=name,
                    errors=[_without(error, request.secrets) for error in found.errors],
                    recommended_values=() if name in hidden else found.recommended,
                    visible=found.visible,
                )
                for name, found in findings.items()
            ],
            sink_class=int(sink_class or 0),  # type: ignore[arg-type]
        )

    def configure(self, request: plugin_pb2.ConfigureRequest) -> plugin_pb2.ConfigureResponse:
        """Binds the process; a lower generation is fenced, the same configuration again changes nothing."""
        sidecar = self._sidecar
        plugin = sidecar.find(request.class_name)
        config = plugin.config_type.parse({**request.config, **request.secrets})
        about = ABOUT.get()
        if about and about != request.connector:
            raise ConnectorBugError(f"Configure of {request.connector} was called for {about}.", reason="PROTOCOL")
        with sidecar.lock:
            bound = sidecar.here
            if bound is not None and request.generation < bound.context.generation:
                raise FencedError(
                    f"The sidecar is bound to generation {bound.context.generation}; {request.generation} is older."
                )
            if bound is not None and request == bound.request:
                return plugin_pb2.ConfigureResponse()
            events = ConnectorEvents(sidecar.events, about) if about else sidecar.events
            context = Context(request.connector, request.generation, events)
            main = plugin(config, context)
            sidecar.bind(Bound(request, plugin, config, context, main))
        if bound is not None:
            # Streams of the generation before.
            if not about:
                sidecar.end_streams(0.0)
            bound.main.end()
        return plugin_pb2.ConfigureResponse()

    def probe(self, _: plugin_pb2.ProbeRequest) -> plugin_pb2.ProbeResponse:
        """Asks the author's class."""
        bound = self._sidecar.here
        if bound is None:
            raise ConnectorBugError("The sidecar isn't configured yet; Configure comes first.", reason="NOT_CONFIGURED")
        return plugin_pb2.ProbeResponse(detail=bound.main.probe() or "")

    def stop(self, request: plugin_pb2.StopRequest) -> plugin_pb2.StopResponse:
        """Ends all streams; the answer says that they have ended. In a shared process, lets go of one connector."""
        if ABOUT.get():
            with self._sidecar.lock:
                left = self._sidecar.shared.pop(ABOUT.get(), None)
            if left is not None:
                left.main.end()
            return plugin_pb2.StopResponse()
        deadline_s = request.deadline_ms / 1000
        self._sidecar.end_streams(deadline_s)
        if self._sidecar.bound is not None:
            self._sidecar.bound.main.end()
        self._sidecar.wait_for_streams(deadline_s)
        return plugin_pb2.StopResponse()

    def on_delete(self, _: plugin_pb2.OnDeleteRequest) -> plugin_pb2.OnDeleteResponse:
        """Lets the author's class release what it holds."""
        bound = self._sidecar.here
        if bound is not None:
            bound.main.on_delete()
        return plugin_pb2.OnDeleteResponse()

    def events(self, _: plugin_pb2.EventsRequest, context: grpc.ServicerContext) -> Iterator[plugin_pb2.EventsResponse]:
        """Streams events."""
        yield from self._sidecar.events.subscribe(context.is_active)


class SourceService:
    """SourceService over a `Source`."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def plan(self, request: source_pb2.PlanRequest) -> source_pb2.PlanResponse:
        """Asks the author's class what there is to do."""
        main = self._sidecar.configured(Role.SOURCE).main
        assert isinstance(main, Source)
        tasks_max = max(1, request.tasks_max)
        plan = main.plan(Offsets(from_proto.positions(request.positions)), tasks_max)
        made = to_contract(plan, tasks_max, request.splits_active, request.splits_max)
        return to_proto.plan(made)

    def watch(self, _: source_pb2.WatchRequest, context: grpc.ServicerContext) -> Iterator[source_pb2.WatchResponse]:
        """Streams a message whenever the author says that the plan has changed."""
        bound = guarded(context, lambda: self._sidecar.configured(Role.SOURCE))
        seen, _reason = bound.context.plan_changes.wait(-1, 0)
        while context.is_active() and self._sidecar.bound is bound and not self._sidecar.stopping:
            count, reason = bound.context.plan_changes.wait(seen, _WATCH_POLL_S)
            if count > seen:
                seen = count
                yield source_pb2.WatchResponse(reason=reason)

    def read(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Serves a Read stream."""
        yield from _serve(self._sidecar, Role.SOURCE, Reading, requests, context)

    def alter_offsets(self, request: source_pb2.AlterOffsetsRequest) -> source_pb2.AlterOffsetsResponse:
        """Has the author's class check and carry out a change of offsets."""
        return source_pb2.AlterOffsetsResponse(handled=_altered(self._sidecar, request))


class SinkService:
    """SinkService over a `Sink`."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def _main(self, generation: int | None = None) -> Sink[Any]:
        main = self._sidecar.configured(Role.SINK, generation).main
        assert isinstance(main, Sink)
        return main

    def ensure_target(self, request: sink_pb2.EnsureTargetRequest) -> sink_pb2.EnsureTargetResponse:
        """Has the author's class prepare a target."""
        import pyarrow as pa

        schema = pa.ipc.read_schema(pa.py_buffer(request.schema)) if request.schema else None
        target = self._main().ensure_target(request.topic, schema, request.dry_run)
        wanted = b"" if target.schema is None else target.schema.serialize().to_pybytes()
        return sink_pb2.EnsureTargetResponse(target=target.target, actions=target.actions, schema=wanted)

    def write(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[sink_pb2.WriteResponse]:
        """Serves a Write stream."""
        yield from _serve(self._sidecar, Role.SINK, Writing, requests, context)

    def commit(self, request: sink_pb2.CommitRequest) -> sink_pb2.CommitResponse:
        """Has the author's class apply staged data."""
        main = self._main(request.generation)
        repeated = main.commit(list(request.tokens), from_proto.positions(request.positions))
        return sink_pb2.CommitResponse(repeated_commit=bool(repeated))

    def alter_offsets(
        self, request: sink_pb2.SinkServiceAlterOffsetsRequest
    ) -> sink_pb2.SinkServiceAlterOffsetsResponse:
        """Has the author's class check and carry out a change of offsets."""
        return sink_pb2.SinkServiceAlterOffsetsResponse(handled=_altered(self._sidecar, request))


class TransformService:
    """TransformService over a `Transform`."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def apply(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Serves an Apply stream."""
        yield from _serve(self._sidecar, Role.TRANSFORM, Applying, requests, context)


def _opening(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
    """Returns the opening message of a stream; None when the stream was over before it came."""
    request = next(requests, None)
    if request is None:
        return None
    if isinstance(request, WireFrame) or request.WhichOneof("message") != "open":
        rpc.abort(context, ConnectorBugError("The first message of a stream must be open.", reason="PROTOCOL"))
    return request.open


def _serve(
    sidecar: Sidecar,
    role: Role,
    begin: Callable[[Any, Any, Limits, Encoding], Stream],
    requests: Iterator[Any],
    context: grpc.ServicerContext,
) -> Iterator[Any]:
    """Serves a stream with an object of the author's class of its own."""
    opening = _opening(requests, context)
    if opening is None:
        return

    def make() -> Stream:
        bound = sidecar.configured(role, opening.generation)
        plugin = bound.plugin(bound.config, bound.context)
        return begin(plugin, opening, sidecar.limits, sidecar.negotiate(opening.encodings))

    stream = guarded(context, make)
    with sidecar.lock:
        sidecar.streams.add(stream)
    try:
        yield from stream.run(requests)
    except Exception as error:
        if not context.is_active():
            return
        _report(error.__cause__ or error)
        rpc.abort(context, told(error))
    finally:
        with sidecar.lock:
            sidecar.streams.discard(stream)


def _altered(sidecar: Sidecar, request: Any) -> bool:
    plugin = sidecar.find(request.class_name)
    config = plugin.config_type.parse({**request.config, **request.secrets})
    positions = [(known.partition_map, known.offset_map) for known in from_proto.positions(request.positions)]
    return bool(plugin.alter_offsets(config, positions, request.validate_only))


def _findings(found: str | Sequence[str] | Findings) -> Findings:
    if isinstance(found, Findings):
        return found
    return Findings((found,) if isinstance(found, str) else tuple(found))


def _without(text: str, secrets: Mapping[str, str]) -> str:
    """Returns a sentence without the secrets an author may have put into it."""
    for secret in secrets.values():
        if secret:
            text = text.replace(secret, "[hidden]")
    return text
