"""Requests that only the leader can serve, sent on to it by the others: a layer around the application.

As in Kafka Connect: the hidden parameter `forward` counts hops (absent, `true`, `false`), the third is refused; the
caller's credentials go along, the leader's status, headers and body come back as they are. Reads are answered here,
of what has been read of the topics; so whoever has changed something by us is answered only when we have read it too.
While nobody leads, or the one who does is gone, a request waits for the next leader, which may be this coordinator, as
in Kafka Connect requests wait for a rebalance. One that may have reached a leader before it ended is never sent again.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl, unquote, urlencode

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from wherry.contract.errors import ErrorClass, WherryError
from wherry.coordinator.api import ApiError, ConflictError, UnavailableError
from wherry.coordinator.rest.bodies import BODY_BYTES_MAX, read_body
from wherry.coordinator.rest.errors import error_response
from wherry.coordinator.rest.server import Application

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

FORWARD_TIMEOUT_S: Final = 90.0
CONNECT_TIMEOUT_S: Final = 5.0
LEADER_PATIENCE_S: Final = 30.0
"""For a leader that can be asked, while one has died or Kafka does not answer; clients wait longer for an answer."""
LEADER_RETRY_S: Final = 0.25
LEADER_ASKERS_MAX: Final = 4
"""Threads that ask Kafka who leads: the others are there for reads, however many changes wait."""
NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
NO_ANSWER: Final = "The leader of this cluster, who alone can do this, can't be found out now; ask again later."
TOO_MANY_HOPS: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
_CHANGES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOPS: Final = {None: "true", "true": "false"}
_NOT_SENT_ON: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_NOT_SENT_BACK: Final = frozenset({"transfer-encoding", "connection", "content-encoding", "content-length"})


class UnreachableError(ApiError):
    """The leader got nothing of a request: whoever is asked next may carry it out."""


class Leader(Protocol):
    """Tells who leads; `leadership.Leadership` does."""

    @property
    def leads(self) -> bool:
        """Whether requests are for this coordinator."""

    def leader_url(self) -> str | None:
        """Where the leader's REST API is; None while nobody leads."""

    def forget_leader(self) -> None:
        """Ask anew: it does not answer."""


class Forwarding:
    """An ASGI application around another one.

    Args:
        app: What answers here.
        leader: Tells who leads.
        set_level: Writes a log level for all workers; called after it was set here.
        trust: Makes what a leader is asked with that speaks https; None trusts what the system trusts.
        catch_up: Reads what the leader has written until now; called after it has changed something for us.
        serves: Whether `app` has a handler for a request; it answers itself what it has none for.
    """

    def __init__(
        self,
        app: Application,
        leader: Leader,
        set_level: Callable[[str, str], None],
        trust: Callable[[], ssl.SSLContext] | None = None,
        catch_up: Callable[[], None] = lambda: None,
        serves: Callable[[Scope], bool] = lambda scope: True,
    ) -> None:
        self._app = app
        self._leader = leader
        self._set_level = set_level
        self._trust = trust
        self._catch_up = catch_up
        self._serves = serves
        self._clients: dict[str, Any] = {}
        self._askers: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, here or by the leader."""
        if scope["type"] != "http" or not _is_for_leader(scope) or not self._serves(scope):
            await self._app(scope, receive, send)
            return
        if self._leader.leads:
            await self._here(scope, receive, send)
            return
        request = Request(scope, receive)
        response: Response | None
        try:
            hops = _hops_of(request)
            body = await read_body(request)
            response = await self._forward(request, hops, body)
        except ClientDisconnect:
            return
        except Exception as error:
            response = error_response(error, request=f"{request.method} {scope['path']}")
        if response is None:  # the leader is this coordinator by now
            await self._here(scope, _once_more(body, receive), send)
        else:
            await response(scope, receive, send)

    async def _here(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer here; a log level that was set goes to the others by the config topic."""
        if not _path(scope).startswith("/admin/"):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        statuses: list[int] = []

        async def tapped() -> Message:
            message = await receive()
            body.extend(message.get("body", b"")[: BODY_BYTES_MAX - len(body)])
            return message

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                if message["status"] < 300:
                    await anyio.to_thread.run_sync(self._spread, _path(scope), bytes(body))
            await send(message)

        try:
            await self._app(scope, tapped, watched)
        except WherryError as error:  # set here, and not told to the others: nothing has been answered yet
            response = error_response(error, request=f"{scope['method']} {_path(scope)}")
            await response(scope, receive, send)

    def _spread(self, path: str, body: bytes) -> None:
        import orjson

        logger = unquote(path.rstrip("/").rpartition("/")[2])
        self._set_level(logger, str(orjson.loads(body)["level"]).upper())

    async def _forward(self, request: Request, hops: str, body: bytes) -> Response | None:
        """The leader's answer; None when this coordinator leads by now."""
        deadline = anyio.current_time() + LEADER_PATIENCE_S
        while (url := await self._leader_url(deadline)) is not None:
            try:
                return await self._forward_to(url, request, hops, body)
            except UnreachableError:
                if anyio.current_time() + LEADER_RETRY_S > deadline:
                    raise
            await anyio.sleep(LEADER_RETRY_S)
        return None

    async def _forward_to(self, url: str, request: Request, hops: str, body: bytes) -> Response:
        query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = [(name, value) for name, value in query if name != "forward"]
        raw_path = request.scope.get("raw_path") or request.scope["path"].encode()
        path = raw_path.decode("ascii", "replace").partition("?")[0]
        target = f"{url.rstrip('/')}{path}?{urlencode([*rest, ('forward', hops)])}"
        log.debug("%s %s is for the leader at %s", request.method, path, url)
        response = await self._send(request, target, body)
        if response.status_code < HTTPStatus.BAD_REQUEST:
            await anyio.to_thread.run_sync(self._read_on)
        location = response.headers.get("location", "")
        if location.startswith(url):
            # Whoever asked goes on asking here.
            base = f"{request.url.scheme}://{request.headers.get('host') or request.url.netloc}"
            response.headers["location"] = base + location.removeprefix(url.rstrip("/"))
        return response

    async def _leader_url(self, deadline: float) -> str | None:
        """Where the leader is, None when that is here; asked again for a while, since one may have died just now."""
        if self._askers is None:
            self._askers = anyio.CapacityLimiter(LEADER_ASKERS_MAX)
        while not self._leader.leads:
            nobody: ApiError = ConflictError(NO_LEADER)
            try:
                url = await anyio.to_thread.run_sync(self._leader.leader_url, limiter=self._askers)
                if url is not None:
                    return url
            except WherryError as error:
                if error.error_class is not ErrorClass.TRANSIENT:
                    raise
                nobody = UnavailableError(f"{NO_ANSWER} {error.message}")
            if anyio.current_time() + LEADER_RETRY_S > deadline:
                raise nobody
            await anyio.sleep(LEADER_RETRY_S)
        return None

    def _read_on(self) -> None:
        try:
            self._catch_up()
        except WherryError as error:
            log.info("What the leader has changed will be seen here later: %s", error.message)

    async def _client(self, scheme: str) -> Any:
        """The client for a scheme; while listeners are changed one by one, leaders of both kinds follow each other."""
        import httpx2

        if scheme not in self._clients:
            timeout = httpx2.Timeout(FORWARD_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
            trusts = scheme == "https" and self._trust is not None
            verify = await anyio.to_thread.run_sync(self._trust) if trusts and self._trust else True
            self._clients[scheme] = httpx2.AsyncClient(timeout=timeout, trust_env=False, verify=verify)
        return self._clients[scheme]

    async def _send(self, request: Request, target: str, body: bytes) -> Response:
        import httpx2

        client = await self._client(target.partition(":")[0])
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _NOT_SENT_ON]
        try:
            answer = await client.request(request.method, target, content=body or None, headers=headers)
        except httpx2.HTTPError as error:
            self._leader.forget_leader()
            reason = str(error) or type(error).__name__
            never_sent = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)) and not _is_of_tls(error)
            kind = UnreachableError if never_sent else ApiError
            raise kind(f"IO Error trying to forward REST request: {reason}") from error
        back = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_SENT_BACK}
        return Response(answer.content, status_code=answer.status_code, headers=back)


def _hops_of(request: Request) -> str:
    """What the leader is told of the hops until it."""
    query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    asked = next((value for name, value in query if name == "forward"), None)
    if asked not in _HOPS:
        raise ConflictError(TOO_MANY_HOPS)
    return _HOPS[asked]


def _once_more(body: bytes, receive: Receive) -> Receive:
    """A body that has been read, to be read again; what comes after it comes from the client."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def _is_of_tls(error: BaseException) -> bool:
    """Whether a connection failed for certificates or the like, which the next attempt does not mend."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLError):
        found = found.__cause__ or found.__context__
    return found is not None


def _path(scope: Scope) -> str:
    return str(scope["path"])


def _is_for_leader(scope: Scope) -> bool:
    """Whether a request changes what the cluster keeps: the leader alone writes."""
    if scope["method"] not in _CHANGES:
        return False
    path = _path(scope)
    if path.startswith("/connector-plugins"):
        return False  # a validation is anybody's
    if path.startswith("/admin/"):
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        return str(query.get("scope", "")).lower() == "cluster"
    return True
