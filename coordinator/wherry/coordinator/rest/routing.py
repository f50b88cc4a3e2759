"""Which method of which resource answers a request.

Starlette gives requests, responses and the ASGI plumbing; matching is our own, for its bodies and orders are Kafka
Connect's (JAX-RS's) to the letter, and a framework that makes its own is in the way: a trailing slash is no other path
on any method, `;a=b` after a segment is dropped, an escaped slash stays in its segment, HEAD and OPTIONS are served
everywhere, and the errors of matching have a body but no Content-Type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from starlette.responses import Response

from wherry.coordinator.api import Herder
from wherry.coordinator.rest.bodies import dumps
from wherry.coordinator.rest.errors import UnmatchedError

_JSON = "application/json"
_READ = (_JSON, "application/*", "*/*")
_TASK_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has been matched.

    Attributes:
        herder: Whom to ask.
        path: Values of the path's variables.
        query: Values of the query, by name.
        body: The body; empty when there is none.
        base_url: Scheme, host and port as the client wrote them.
        traceparent: The client's trace context; empty when it sends none.
        headers: Of the request, found by name in any case.
    """

    herder: Herder
    path: Mapping[str, str]
    query: Mapping[str, list[str]]
    body: bytes
    base_url: str
    traceparent: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The connector of the path."""
        return self.path["connector"]

    @property
    def task(self) -> int:
        """The task of the path; a text that is no number names nothing."""
        text = self.path["task"]
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -_TASK_MAX - 1 <= int(text) <= _TASK_MAX:
            raise NoSuchPathError
        return int(text)

    def flag(self, name: str) -> bool:
        """A boolean of the query: true in any case; absent, anything else, or false first, is false."""
        return self.query.get(name, [""])[0].lower() == "true"


class NoSuchPathError(UnmatchedError):
    """A path that matched until one of its variables was read: 404, with a Content-Type."""

    typed = True

    def __init__(self) -> None:
        super().__init__(404)


Handler = Callable[[Call], Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Attributes:
        method: Of HTTP; a GET answers HEAD, too.
        path: `{x}` in it is a variable.
        handler: Answers.
        takes_body: Whether it reads the body; others ignore one.
        produces: The media type of its answers.
        internal: Whether workers send it to one another, signed; such requests need no password.
    """

    method: str
    path: str
    handler: Handler
    takes_body: bool = False
    internal: bool = False
    produces: str = _JSON

    @property
    def segments(self) -> tuple[str, ...]:
        """The path, cut."""
        return tuple(self.path.strip("/").split("/")) if self.path != "/" else ()


@dataclass(frozen=True, slots=True)
class Match:
    """The route found and the values of its variables."""

    route: Route
    path: Mapping[str, str]


class Router:
    """Finds routes; immutable."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            self._routes.setdefault(route.segments, {})[route.method] = route

    def match(self, method: str, raw_path: str, *, accept: str | None = None) -> Match | Response:
        """The route for a request, or the answer to OPTIONS.

        Raises:
            UnmatchedError: 404 for an unknown path, 405 for a method it does not have, 400 for an empty segment.
        """
        if "//" in raw_path:
            raise UnmatchedError(400)
        found = self._resource(raw_path)
        if found is None:
            raise UnmatchedError(404)
        methods, variables = found
        if method == "OPTIONS":
            return _options(methods, accept)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise UnmatchedError(405)
        return Match(route, variables)

    def _resource(self, raw_path: str) -> tuple[dict[str, Route], dict[str, str]] | None:
        segments = tuple(unquote(segment.partition(";")[0]) for segment in raw_path.split("/")[1:])
        if segments and not segments[-1]:
            segments = segments[:-1]
        best: tuple[dict[str, Route], dict[str, str]] | None = None
        for pattern, methods in self._routes.items():
            variables = _variables(pattern, segments)
            # Literal segments win over variables, as in JAX-RS.
            if variables is not None and (best is None or len(variables) < len(best[1])):
                best = methods, variables
        return best


def check_media_types(route: Route, *, content_type: str | None, accept: str | None, has_body: bool) -> None:
    """Refuse media types other than JSON, in the order and with the bodies of the real worker.

    Raises:
        UnmatchedError: 415 or 406.
    """
    if has_body:
        if content_type is not None and content_type.partition(";")[0].strip().lower() not in _READ:
            raise UnmatchedError(415)
        if route.takes_body and (content_type is None or "*" in content_type):
            raise NoMediaTypeError
    if accept and not any(_accepts(part, route.produces) for part in accept.split(",")):
        raise UnmatchedError(406)


class NoMediaTypeError(UnmatchedError):
    """A body whose type nobody told: 415, with a Content-Type."""

    typed = True

    def __init__(self) -> None:
        super().__init__(415)


def parse_query(query: str) -> dict[str, list[str]]:
    """Values by name, in the order given; an empty value is a value."""
    return parse_qs(query, keep_blank_values=True)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer with a JSON body."""
    return Response(dumps(value), status_code=status, media_type=_JSON, headers=headers)


def _variables(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    variables: dict[str, str] = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            if not given:
                return None
            variables[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return variables


def _options(methods: Mapping[str, Route], accept: str | None) -> Response:
    allowed = [*(["HEAD"] if "GET" in methods else []), *methods, "OPTIONS"]
    headers = {"Allow": ",".join(allowed)}
    if accept is not None and _JSON in accept:
        return Response(media_type=_JSON, headers=headers)
    return Response(", ".join(allowed), headers={**headers, "Content-Type": "text/plain"})


def _accepts(media_range: str, media_type: str) -> bool:
    # A weight of 0 does not refuse, as the real worker reads it.
    family = f"{media_type.partition('/')[0]}/*"
    return media_range.partition(";")[0].strip().lower() in (media_type, family, "*/*", "*")
