"""The ASGI application: takes a request through matching, checks, a thread of its own, and makes errors answers.

Every handler runs in a thread (herders are synchronous) with a deadline; at most `CALLS_AT_ONCE_MAX` at a time, so that
a slow validation can take a thread but never the server. Those that take a body, which is a configuration to validate
nearly always, are fewer and wait for one another only: hundreds of connectors may be created at once, and what asks for
a state, or pauses something, is answered meanwhile.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from opentelemetry.trace import SpanKind
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from wherry.contract import trace
from wherry.coordinator.api import ApiError, Herder
from wherry.coordinator.rest import connectors, internal, loggers, offsets, plugins, root, tasks, wherry_v1
from wherry.coordinator.rest.auth import DENIED, BasicAuth
from wherry.coordinator.rest.bodies import read_body
from wherry.coordinator.rest.errors import error_response
from wherry.coordinator.rest.headers import HeaderRules
from wherry.coordinator.rest.routing import Call, Match, Route, Router, check_media_types, parse_query

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

CALLS_AT_ONCE_MAX = 64
CONFIGURATIONS_AT_ONCE_MAX = 16
REQUEST_DEADLINE_S = 90.0
HEALTH_DEADLINE_S = 10.0
VERSION_HEADER = "Wherry-Version"


MAIN_ROUTES = (
    *root.ROUTES,
    *connectors.ROUTES,
    *tasks.ROUTES,
    *internal.ROUTES,
    *offsets.ROUTES,
    *plugins.ROUTES,
    *wherry_v1.ROUTES,
)


class App:
    """Serves one herder.

    Args:
        herder: Whom to ask.
        version: Our own version, told in a header since `GET /` tells Kafka's.
        rules: Headers the worker's configuration adds.
        admin: Whether `/admin` is served; an empty `admin.listeners` says no.
        main: Whether all the rest is served; listeners of their own for `/admin` say no.
        auth: Who may ask; None lets everybody.
    """

    def __init__(
        self,
        herder: Herder,
        *,
        version: str,
        rules: HeaderRules | None = None,
        admin: bool = True,
        main: bool = True,
        auth: BasicAuth | None = None,
    ) -> None:
        self._herder = herder
        self._version = version
        self._rules = rules or HeaderRules()
        self._auth = auth
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}
        self._router = Router(
            [*(MAIN_ROUTES if main else ()), *(loggers.routes(loggers.Loggers()) if admin else ())],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as error:
            response = error_response(error, request=f"{request.method} {scope['path']}")
        response.headers[VERSION_HEADER] = self._version
        self._rules.apply(response.headers, asked=request.headers, method=request.method)
        if request.method == "HEAD":
            # The length stays, the body goes.
            response.body = b""
        await response(scope, receive, send)

    def serves(self, scope: Scope) -> bool:
        """Whether a request is one that a handler gets; any other is answered with what is wrong with it."""
        try:
            return isinstance(self._matched(Request(scope)), Match)
        except ApiError:
            return False

    async def _answer(self, request: Request) -> Response:
        match = self._matched(request)
        if isinstance(match, Response):
            return match
        body = await read_body(request) if match.route.takes_body else b""
        return await self._call(match, request, body)

    def _matched(self, request: Request) -> Match | Response:
        """The route of a request that is in order, or the answer to one that needs no handler."""
        raw_path = request.scope.get("raw_path") or request.scope["path"].encode()
        path = raw_path.decode("ascii", "replace").partition("?")[0]
        match = self._router.match(request.method, path, accept=request.headers.get("accept"))
        if isinstance(match, Response):
            # A browser's question before its request comes without password, whatever the request would have.
            asks_first = self._rules.is_preflight(request.method, request.headers)
            return match if asks_first or self._lets_in(request) else _denied("text/plain")
        check_media_types(
            match.route,
            content_type=request.headers.get("content-type"),
            accept=request.headers.get("accept"),
            has_body=_has_body(request.headers),
        )
        if not match.route.internal and not self._lets_in(request):
            return _denied("application/json")
        return match

    def _lets_in(self, request: Request) -> bool:
        return self._auth is None or self._auth.allows(request.headers.get("authorization"))

    async def _call(self, match: Match, request: Request, body: bytes) -> Response:
        call = Call(
            herder=self._herder,
            path=match.path,
            query=parse_query(request.scope["query_string"].decode("latin-1")),
            body=body,
            traceparent=request.headers.get(trace.METADATA_KEY, ""),
            headers=request.headers,
            base_url=f"{request.url.scheme}://{request.headers.get('host') or request.url.netloc}",
        )
        if not self._limiters:  # they belong to the loop that runs us
            self._limiters[False] = anyio.CapacityLimiter(CALLS_AT_ONCE_MAX)
            self._limiters[True] = anyio.CapacityLimiter(CONFIGURATIONS_AT_ONCE_MAX)
        deadline_s = HEALTH_DEADLINE_S if match.route.path == "/health" else REQUEST_DEADLINE_S
        began = datetime.datetime.now(datetime.UTC)
        try:
            with anyio.fail_after(deadline_s):
                return await anyio.to_thread.run_sync(
                    _traced,
                    match.route,
                    call,
                    limiter=self._limiters[match.route.takes_body],
                    abandon_on_cancel=True,
                )
        except TimeoutError:
            when = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            stage = f"handling {match.route.method} {request.scope['path']}, which began at {when}"
            raise ApiError(f"Request timed out. The worker is currently {stage}.") from None


def _traced(route: Route, call: Call) -> Response:
    attributes = {"http.request.method": route.method, "http.route": route.path}
    if "connector" in call.path:
        attributes["wherry.connector"] = call.path["connector"]
    name = f"{route.method} {route.path}"
    with trace.span(name, parent=call.traceparent, kind=SpanKind.SERVER, attributes=attributes) as span:
        response = route.handler(call)
        span.set_attribute("http.response.status_code", response.status_code)
        return response


def _denied(media_type: str) -> Response:
    """The real worker's answer: a text, whatever its type says, and no challenge that makes browsers ask."""
    return Response(DENIED, status_code=401, headers={"Content-Type": media_type})


def _has_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
