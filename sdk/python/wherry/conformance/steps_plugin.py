"""Steps about the process and about PluginService."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import grpc

from wherry.conformance.failure import Failure
from wherry.conformance.matching import expect_match
from wherry.conformance.running import Running
from wherry.conformance.session import hello_request
from wherry.conformance.wire import expect_error, plain
from wherry.connector.v1 import common_pb2, plugin_pb2
from wherry.contract import from_proto
from wherry.contract.errors import ConfigError

NUMBER_TYPES: Final = frozenset(
    (
        plugin_pb2.CONFIG_TYPE_INT,
        plugin_pb2.CONFIG_TYPE_SHORT,
        plugin_pb2.CONFIG_TYPE_LONG,
        plugin_pb2.CONFIG_TYPE_DOUBLE,
        plugin_pb2.CONFIG_TYPE_BOOLEAN,
    )
)
EVENTS_WAIT_S: Final = 5.0


def call(
    run: Running,
    name: str,
    *,
    request: dict[str, Any] | None = None,
    expect: dict[str, Any] | None = None,
    errors: list[str] | None = None,
    within_s: float = 30.0,
) -> None:
    """Makes a unary call and checks its answer, or that it is refused with one of some error classes."""
    filled = run.variables.fill(request or {})
    begin = time.monotonic()
    try:
        answer = run.call(name, filled, within_s)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and time.monotonic() - begin >= within_s:
            raise Failure(f"{name} did not answer within {within_s:g} s.") from None
        if errors is None:
            raise Failure(f"{name} failed: {error.code().name}, {error.details()}.") from None
        expect_error(error, errors)
        return
    if errors is not None:
        raise Failure(f"{name} answered; it should have been refused with {' or '.join(errors)}.")
    expect_match(plain(answer), run.variables.fill(expect or {}), name)


def hello_names_the_process(run: Running) -> None:
    """Hello tells the instance id of the environment, a revision in range and at least one encoding."""
    process = run.session.process
    for _ in range(2):
        answer = run.call("PluginService.Hello", hello_request(process))
        if answer.instance_id != process.instance_id:
            raise Failure(f"Hello tells the instance id {answer.instance_id!r}, not WHERRY_INSTANCE_ID's.")
        if not 1 <= answer.revision <= 1:
            raise Failure(f"Hello chose the revision {answer.revision}; the engine offered 1 to 1.")
        if not answer.plugin_name or not answer.plugin_version:
            raise Failure("Hello tells no name or no version of the plugin.")
        if not answer.encodings:
            raise Failure("Hello tells no encoding.")
    if run.manifest is not None and run.session.hello.plugin_name != run.manifest.name:
        raise Failure(f"Hello tells the name {run.session.hello.plugin_name}; the manifest {run.manifest.name}.")


def healthy(run: Running) -> None:
    """The health service says SERVING."""
    status = run.session.wire.health(10.0)
    if status != "SERVING":
        raise Failure(f"The health of the sidecar is {status}.")


def descriptions_are_sound(run: Running) -> None:
    """What Describe tells is complete, without contradictions, the same each time and fits the manifest."""
    first = run.call("PluginService.Describe", {})
    if first != run.call("PluginService.Describe", {}):
        raise Failure("Describe gave two different answers.")
    names = [name for known in first.classes for name in {known.class_name, *known.aliases}]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Failure(f"Describe has the name {twice[0]} twice.")
    for description in first.classes:
        _expect_sound(description)
    if run.manifest is not None:
        told = {(known.class_name, known.role) for known in first.classes}
        listed = {(known.class_name, int(known.role)) for known in run.manifest.classes}
        if told != listed:
            odd = sorted(name for name, _ in told ^ listed)
            raise Failure(f"Describe and the manifest differ in {', '.join(odd)}.")


def required_keys_are_told(run: Running) -> None:
    """ValidateConfig names every required key that is absent."""
    for key in run.description.config:
        if key.required and not key.HasField("default_value"):
            _expect_finding(run, key.name, None)


def types_are_checked(run: Running) -> None:
    """ValidateConfig names a key whose value is of another type."""
    for key in run.description.config:
        if key.type in NUMBER_TYPES:
            _expect_finding(run, key.name, "dog")


def bad_values_are_told(run: Running) -> None:
    """ValidateConfig names the keys whose values the subject file calls wrong."""
    for key, value in run.subject.bad_config.items():
        _expect_finding(run, key, str(run.variables.fill(value)))


def good_config_is_accepted(run: Running) -> None:
    """ValidateConfig finds nothing wrong with the subject's configuration."""
    for level in ("VALIDATION_LEVEL_STATIC", "VALIDATION_LEVEL_CONNECT"):
        answer = _validate(run, {}, level)
        wrong = [f"{value.name}: {' '.join(value.errors)}" for value in answer.values if value.errors]
        if wrong:
            raise Failure(f"ValidateConfig refuses the configuration of the subject file: {'; '.join(wrong)}.")


def configure(
    run: Running,
    *,
    shift: int = 0,
    changes: dict[str, str | None] | None = None,
    errors: list[str] | None = None,
    within_s: float = 30.0,
) -> None:
    """Configures the class under the case's generation, shifted by some."""
    config, secrets = run.config(run.variables.fill(changes or {}))
    request = {
        "connector": run.connector,
        "class_name": run.class_name,
        "generation": run.generation + shift,
        "config": config,
        "secrets": secrets,
    }
    call(run, "PluginService.Configure", request=request, errors=errors, within_s=within_s)


def configure_without_required(run: Running) -> None:
    """Configure is refused as CONFIG when a required key is absent."""
    for key in run.description.config:
        if key.required and not key.HasField("default_value"):
            configure(run, changes=dict.fromkeys((key.name, *key.aliases)), errors=["CONFIG"])


def probe(run: Running) -> None:
    """Probe says that the other system can be reached."""
    call(run, "PluginService.Probe")


def stop(run: Running, *, deadline_ms: int = 5000) -> None:
    """Stop answers within its deadline; repeating it is harmless."""
    for _ in range(2):
        request = {"deadline_ms": deadline_ms}
        call(run, "PluginService.Stop", request=request, within_s=deadline_ms / 1000 + 1)


def terminate(run: Running, *, within_s: float = 5.0) -> None:
    """The process ends after SIGTERM."""
    run.session.process.terminate(within_s)
    run.forget_streams()
    run.session.stop()


def restart(run: Running, *, kill: bool = True) -> None:
    """Ends the process, by SIGKILL or in order, and starts another one."""
    run.forget_streams()
    run.session.stop(kill=kill)
    run.session.start()


def events_are_taken_over(run: Running) -> None:
    """A second subscription to Events ends the first and goes on itself."""
    wire = run.session.wire
    first = wire.subscribe("PluginService.Events", {}, 60.0)
    # Without an event to see, only time tells that a subscription has arrived.
    time.sleep(0.5)
    second = wire.subscribe("PluginService.Events", {}, 60.0)
    try:
        ended = _ends_within(first, EVENTS_WAIT_S)
        if not ended:
            raise Failure(f"The first subscription to Events went on for {EVENTS_WAIT_S:g} s beside the second.")
        if not second.is_active():
            raise Failure(f"The second subscription to Events ended: {second.code().name}.")
    finally:
        first.cancel()
        second.cancel()


def _ends_within(call_: Any, within_s: float) -> bool:
    """Tells whether a subscription ends in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not call_.is_active():
            return True
        time.sleep(0.02)
    return False


def _validate(
    run: Running, changes: dict[str, str | None], level: str = "VALIDATION_LEVEL_STATIC"
) -> plugin_pb2.ValidateConfigResponse:
    config, secrets = run.config(changes)
    request = {"class_name": run.class_name, "config": config, "secrets": secrets, "level": level}
    try:
        answer = run.call("PluginService.ValidateConfig", request)
    except grpc.RpcError as error:
        raise Failure(
            f"ValidateConfig failed ({error.code().name}, {error.details()}); errors of values belong in its answer."
        ) from None
    assert isinstance(answer, plugin_pb2.ValidateConfigResponse)
    return answer


def _expect_finding(run: Running, key: str, value: str | None) -> None:
    spellings = next((known.aliases for known in run.description.config if known.name == key), ())
    answer = _validate(run, {**dict.fromkeys(spellings), key: value})
    if not any(found.name == key and found.errors for found in answer.values):
        how = "absent" if value is None else f"{value!r}"
        others = ", ".join(found.name for found in answer.values if found.errors) or "nothing"
        raise Failure(f"With {key} {how} ValidateConfig should name {key}; it names {others}.")


def _expect_sound(description: plugin_pb2.ClassDescription) -> None:
    name = description.class_name
    if not name or description.role == common_pb2.ROLE_UNSPECIFIED:
        raise Failure(f"The class {name or '(no name)'} has no name or no role.")
    if (description.role == common_pb2.ROLE_SINK) != bool(description.sink_class):
        raise Failure(f"{name} has the role {description.role} and the sink class {description.sink_class}.")
    if (description.role == common_pb2.ROLE_SOURCE) != bool(description.source_class):
        raise Failure(f"{name} has the role {description.role} and the source class {description.source_class}.")
    if description.capabilities.raw and description.capabilities.typed:
        raise Failure(f"{name} asks for bytes as they are (raw) and for values with a schema (typed) at once.")
    keys = [key.name for key in description.config]
    if len(keys) != len(set(keys)) or "" in keys:
        raise Failure(f"{name} has a key twice or one without a name.")
    for key in description.config:
        if not key.documentation:
            raise Failure(f"{name} doesn't tell what {key.name} does.")
        if key.required and key.HasField("default_value"):
            raise Failure(f"{name} requires {key.name}, which has a default.")
        if key.HasField("default_value"):
            _expect_good_default(name, key)
    for schema in (description.partition_schema_json, description.offset_schema_json):
        try:
            json.loads(schema or "{}")
        except ValueError as error:
            raise Failure(f"{name} has a schema of positions that isn't JSON: {error}.") from None


def _expect_good_default(name: str, key: plugin_pb2.ConfigKey) -> None:
    try:
        from_proto.config_key(key).parse(key.default_value)
    except ConfigError as error:
        raise Failure(f"{name} has a default of {key.name} that it would refuse: {error.message}") from None
