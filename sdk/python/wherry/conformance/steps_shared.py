"""Steps about a process that plans for several connectors, as `planning: shared` in a manifest promises.

Connectors have short names of the case's own here; every call says in its metadata which one it is about.
"""

from __future__ import annotations

from typing import Final

import grpc

from wherry.conformance.failure import Failure
from wherry.conformance.running import Running
from wherry.conformance.wire import expect_error
from wherry.contract.shared import connector_metadata

STOP_MS: Final = 2000


def configure_about(
    run: Running, *, who: str, named: str | None = None, shift: int = 0, errors: list[str] | None = None
) -> None:
    """Configures a connector, under the case's generation shifted by some; `named` is whom the message names then."""
    config, secrets = run.config({"name": _name(run, who)})
    request = {
        "connector": _name(run, named or who),
        "class_name": run.class_name,
        "generation": run.generation + shift,
        "config": config,
        "secrets": secrets,
    }
    _call(run, "PluginService.Configure", who, request, errors)


def probe_about(run: Running, who: str, *, errors: list[str] | None = None) -> None:
    """Probes as a connector."""
    _call(run, "PluginService.Probe", who, {}, errors)


def plan_about(run: Running, who: str, *, errors: list[str] | None = None) -> None:
    """Plans as a connector, from the beginning."""
    _call(run, "SourceService.Plan", who, {"tasks_max": 1}, errors)


def stop_about(run: Running, who: str) -> None:
    """Lets go of a connector; repeating it is harmless."""
    for _ in range(2):
        _call(run, "PluginService.Stop", who, {"deadline_ms": STOP_MS}, None)


def _name(run: Running, who: str) -> str:
    # Any characters may come in a name, and headers of HTTP/2 don't take them all.
    return f"{run.connector}-{who}-ä"


def _call(run: Running, name: str, who: str, request: dict[str, object], errors: list[str] | None) -> None:
    try:
        run.session.wire.call(name, request, metadata=connector_metadata(_name(run, who)))
    except grpc.RpcError as error:
        if errors is None:
            raise Failure(f"{name} about {who} failed: {error.code().name}, {error.details()}.") from None
        expect_error(error, errors)
        return
    if errors is not None:
        raise Failure(f"{name} about {who} answered; it should have been refused with {' or '.join(errors)}.")
