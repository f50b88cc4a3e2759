"""All listeners of a worker: where they listen, what each serves, with which key, to whom.

Decides what the worker's settings mean for REST and binds every socket at once, so that a taken port or a missing key
is told before anything else starts.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wherry.coordinator.api import Herder
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.rest import auth, tls
from wherry.coordinator.rest.app import App
from wherry.coordinator.rest.headers import HeaderRules, parse_rules
from wherry.coordinator.rest.server import Application, Door, Listener, RestServer


@dataclass(frozen=True, slots=True)
class _Place:
    """A listener with what it serves."""

    listener: Listener
    main: bool
    admin: bool
    context: ssl.SSLContext | None


class RestSite:
    """The listeners of one worker, bound but not served yet.

    Raises:
        ConfigError: A setting is wrong, a port is taken, or https has no key.
    """

    def __init__(self, worker: WorkerConfig, environ: Mapping[str, str] | None = None) -> None:
        self._rules = _header_rules(worker)
        environment = os.environ if environ is None else environ
        self._auth = auth.configured(worker.parsed["rest.extension.classes"], worker.values, environment)
        places = _places(worker)
        self._doors = []
        try:
            for place in places:
                self._doors.append((place, place.listener.bind()))
        except BaseException:
            self.close()
            raise

    @property
    def ports(self) -> list[int]:
        """Ports of the listeners that serve the API, in the order of the settings."""
        return [int(bound.getsockname()[1]) for place, bound in self._doors if place.main]

    def serve(
        self, herder: Herder, *, version: str, around: Callable[[App], Application] = lambda app: app
    ) -> RestServer:
        """A server for a herder, with something around what it serves; not started yet."""
        apps: dict[tuple[bool, bool], Application] = {}
        doors = []
        for place, bound in self._doors:
            kind = place.main, place.admin
            if kind not in apps:
                app = App(
                    herder, version=version, rules=self._rules, main=place.main, admin=place.admin, auth=self._auth
                )
                apps[kind] = around(app)
            doors.append(Door(apps[kind], bound, place.context))
        return RestServer(doors)

    def close(self) -> None:
        """Let go of sockets that are not served."""
        for _, bound in self._doors:
            bound.close()


def _places(worker: WorkerConfig) -> list[_Place]:
    main = [Listener.parse(text) for text in worker.listeners]
    given: Sequence[str] | None = worker.parsed["admin.listeners"]
    own = None if given is None else [Listener.parse(text, key="admin.listeners") for text in given]
    shared = own is None or set(own) == set(main)
    context = _context(worker, main, tls.MAIN_PREFIX, "listeners")
    places = [_Place(each, True, shared, context if each.secure else None) for each in main]
    if own and not shared:
        admin_context = _context(worker, own, tls.ADMIN_PREFIX, "admin.listeners")
        places += [_Place(each, False, True, admin_context if each.secure else None) for each in own]
    return places


def _context(worker: WorkerConfig, listeners: Sequence[Listener], prefix: str, key: str) -> ssl.SSLContext | None:
    if not any(each.secure for each in listeners):
        return None
    return tls.server_context(tls.settings(worker.values, prefix), key)


def _header_rules(worker: WorkerConfig) -> HeaderRules:
    def parts(key: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in worker.parsed[key].split(",") if part.strip())

    return HeaderRules(
        allowed_origins=parts("access.control.allow.origin"),
        allowed_methods=parts("access.control.allow.methods"),
        rules=parse_rules(worker.parsed["response.http.headers.config"]),
    )
