"""What goes to the leader, how, and what comes back: the layer alone, with a leader that only records."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from starlette.responses import Response

from wherry.contract.errors import AuthError, TransientError, WherryError
from wherry.coordinator.rest import forward
from wherry.coordinator.rest.forward import NO_ANSWER, NO_LEADER, TOO_MANY_HOPS, Forwarding


class Recorder(http.server.BaseHTTPRequestHandler):
    """A leader that answers 418 and tells what it was asked."""

    seen: list[tuple[str, str, dict[str, str], bytes]]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.seen.append((self.command, self.path, {k.title(): v for k, v in self.headers.items()}, body))
        answer = json.dumps({"error_code": 418, "message": "teapot"}).encode()
        self.send_response(418)
        self.send_header("Content-Type", "application/json")
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/connectors/x")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PUT = do_DELETE = do_PATCH = _answer

    def log_message(self, *args: Any) -> None:
        pass


class Leader:
    """Who leads, as the test wants it."""

    def __init__(self, url: str | None, *, leads: bool = False) -> None:
        self.url, self.leads, self.forgotten = url, leads, 0

    def leader_url(self) -> str | None:
        return self.url

    def forget_leader(self) -> None:
        self.forgotten += 1


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a leader here."""
    monkeypatch.setattr(forward, "LEADER_RETRY_S", 0.01)
    monkeypatch.setattr(forward, "LEADER_PATIENCE_S", 0.05)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for a leader as long as it takes."""
    monkeypatch.setattr(forward, "LEADER_PATIENCE_S", 60.0)


@pytest.fixture
def remote() -> Iterator[tuple[str, list[Any]]]:
    handler = type("Handler", (Recorder,), {"seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler.seen
    server.shutdown()
    server.server_close()


def ask(
    leader: Leader,
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    here: int = 200,
    serves: Callable[[Any], bool] = lambda scope: True,
    spread: Callable[[str, str], None] | None = None,
) -> tuple[int, dict[str, str], bytes, list[tuple[str, str]]]:
    """Status, headers and body of the answer, and the log levels spread."""
    levels: list[tuple[str, str]] = []
    sent: list[Any] = []
    path, _, query = target.partition("?")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": here, "headers": [(b"x-here", b"1")]})
        await send({"type": "http.response.body", "body": b"here"})

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path.replace("%20", " "),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    forwarding = Forwarding(
        app, leader, spread or (lambda logger, level: levels.append((logger, level))), serves=serves
    )
    anyio.run(forwarding, scope, receive, send)
    found = {name.decode().title(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"], levels


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/connectors"),
        ("HEAD", "/connectors/c"),
        ("OPTIONS", "/connectors"),
        ("PUT", "/connector-plugins/X/config/validate"),
        ("PUT", "/admin/loggers/x"),
        ("PUT", "/admin/loggers/x?scope=worker"),
    ],
)
def test_reads_validations_and_its_own_loggers_are_answered_by_anybody(method, target):
    assert ask(Leader(None), method, target)[:3:2] == (200, b"here")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/connectors"),
        ("PUT", "/connectors/c/config"),
        ("PATCH", "/connectors/c/config"),
        ("DELETE", "/connectors/c"),
        ("PUT", "/connectors/c/pause"),
        ("POST", "/connectors/c/restart"),
        ("PUT", "/admin/loggers/x?scope=cluster"),
    ],
)
def test_what_changes_something_is_the_leaders(method, target):
    status, _, body, _ = ask(Leader(None), method, target)
    assert (status, json.loads(body)) == (409, {"error_code": 409, "message": NO_LEADER})
    assert ask(Leader(None, leads=True), method, target, b'{"level":"warn"}')[:3:2] == (200, b"here")


def test_what_no_handler_is_for_is_answered_here_whoever_leads():
    asked: list[str] = []

    def serves(scope: Any) -> bool:
        asked.append(scope["path"])
        return False

    assert ask(Leader(None), "POST", "/nowhere", serves=serves)[:3:2] == (200, b"here")
    assert asked == ["/nowhere"]


class Silent(Leader):
    """Kafka does not tell who leads, for the first questions."""

    def __init__(self, url: str | None, failures: list[WherryError]) -> None:
        super().__init__(url)
        self.failures = failures

    def leader_url(self) -> str | None:
        if self.failures:
            raise self.failures.pop()
        return self.url


def test_who_leads_is_asked_again_while_kafka_does_not_answer(remote, patient):
    leader = Silent(remote[0], [TransientError("Kafka could not describe group c: no answer in time.")] * 3)
    assert ask(leader, "POST", "/connectors")[0] == 418
    assert len(remote[1]) == 1


def test_a_leader_that_is_not_told_for_long_is_unavailable_in_words():
    why = "Kafka could not describe group c: no answer in time."
    status, _, body, _ = ask(Silent("http://never", [TransientError(why)] * 1000), "POST", "/connectors")
    assert (status, json.loads(body)["message"]) == (503, f"{NO_ANSWER} {why}")


def test_what_asking_again_can_not_mend_is_told_at_once():
    leader = Silent("http://never", [AuthError("Not allowed to describe group c.")])
    status, _, body, _ = ask(leader, "POST", "/connectors")
    assert (status, json.loads(body)["message"]) == (500, "Not allowed to describe group c.")


def test_the_request_goes_as_it_came_with_credentials_and_the_answer_comes_as_it_is(remote):
    url, seen = remote
    given = {"Authorization": "Basic xyz", "Content-Type": "application/json", "Host": "standby:8083"}
    target = "/connectors/my%20conn/restart?includeTasks=true&onlyFailed="
    status, headers, body, _ = ask(Leader(url), "POST", target, b'{"a": 1}', given)
    assert (status, json.loads(body)["message"], headers["Location"]) == (
        *(418, "teapot"),
        "http://standby:8083/connectors/x",  # whoever asked goes on asking there
    )
    ((method, path, passed, content),) = seen
    assert (method, content) == ("POST", b'{"a": 1}')
    assert path == "/connectors/my%20conn/restart?includeTasks=true&onlyFailed=&forward=true"
    assert (passed["Authorization"], passed["Host"]) == ("Basic xyz", url.removeprefix("http://"))


def test_hops_are_counted_and_the_third_is_refused(remote):
    url, seen = remote
    assert ask(Leader(url), "DELETE", "/connectors/c?forward=true")[0] == 418
    assert seen[0][1] == "/connectors/c?forward=false"
    status, _, body, _ = ask(Leader(url), "DELETE", "/connectors/c?forward=false")
    assert (status, json.loads(body)["message"], len(seen)) == (409, TOO_MANY_HOPS, 1)
    assert ask(Leader(url, leads=True), "DELETE", "/connectors/c?forward=false")[0] == 200


def test_a_leader_that_does_not_answer_is_an_error_and_is_asked_for_anew(free_tcp_port_of_nobody):
    leader = Leader(f"http://127.0.0.1:{free_tcp_port_of_nobody}")
    status, _, body, _ = ask(leader, "PUT", "/connectors/c/pause")
    assert (status, leader.forgotten > 0) == (500, True)
    assert json.loads(body)["message"].startswith("IO Error trying to forward REST request: ")


class Succeeded(Leader):
    """Leaders, or nobody, one after the other; the last one stays. The name of this coordinator is `here`."""

    def __init__(self, *urls: str | None) -> None:
        super().__init__(None)
        self.urls = list(urls)

    def leader_url(self) -> str | None:
        url = self.urls.pop(0) if len(self.urls) > 1 else self.urls[0]
        self.leads = url == "here"
        return None if self.leads else url


def test_a_request_waits_for_the_leader_after_the_one_that_died(remote, patient, free_tcp_port_of_nobody):
    dead = f"http://127.0.0.1:{free_tcp_port_of_nobody}"
    leader = Succeeded(dead, dead, None, None, remote[0])
    assert ask(leader, "PUT", "/connectors/c/config", b"{}")[0] == 418
    assert [(method, path, body) for method, path, _, body in remote[1]] == [
        ("PUT", "/connectors/c/config?forward=true", b"{}")
    ]


def test_a_request_is_answered_here_when_this_coordinator_follows_the_one_that_died(patient, free_tcp_port_of_nobody):
    dead = f"http://127.0.0.1:{free_tcp_port_of_nobody}"
    target = "/admin/loggers/org.x?scope=cluster"
    status, _, body, levels = ask(Succeeded(dead, None, "here"), "PUT", target, b'{"level": "warn"}', here=204)
    assert (status, body) == (204, b"here")
    assert levels == [("org.x", "WARN")], "its body has been read twice"


@pytest.fixture
def cutting() -> Iterator[tuple[str, list[str]]]:
    """A leader that reads a request and ends without a word."""
    seen: list[str] = []

    class Cutting(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            seen.append(self.path)
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


def test_what_may_have_been_carried_out_is_not_sent_again(cutting, patient):
    url, seen = cutting
    status, _, body, _ = ask(Leader(url), "PUT", "/connectors/c/pause")
    assert (status, seen) == (500, ["/connectors/c/pause?forward=true"])
    assert json.loads(body)["message"].startswith("IO Error trying to forward REST request: ")


def test_a_leader_whose_certificate_is_not_trusted_is_told_of_at_once(patient, remote):
    leader = Leader(remote[0].replace("http:", "https:"))  # speaks no TLS at all
    status, _, body, _ = ask(leader, "PUT", "/connectors/c/pause")
    assert (status, leader.forgotten) == (500, 1)
    assert "SSL" in json.loads(body)["message"]


def test_a_level_for_the_cluster_is_spread_once_it_was_set_here():
    body = b'{"level": "debug"}'
    target = "/admin/loggers/org.x%2Fy?scope=CLUSTER"
    assert ask(Leader(None, leads=True), "PUT", target, body, here=204)[3] == [("org.x/y", "DEBUG")]
    assert ask(Leader(None, leads=True), "PUT", target, body, here=404)[3] == []


def test_a_level_that_cannot_be_spread_is_an_error_in_words():
    def spread(logger: str, level: str) -> None:
        raise TransientError("Error writing logger level to Kafka: no answer.")

    status, _, body, _ = ask(
        *(Leader(None, leads=True), "PUT", "/admin/loggers/org.x?scope=cluster", b'{"level": "INFO"}'), spread=spread
    )
    assert (status, json.loads(body)["message"]) == (500, "Error writing logger level to Kafka: no answer.")


@pytest.fixture
def free_tcp_port_of_nobody() -> int:
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def test_an_answer_waits_until_what_it_changed_is_read_here_too():
    read: list[str] = []

    async def told(status: int, fails: bool) -> int:
        def catch_up() -> None:
            read.append("on")
            if fails:
                raise TransientError("too slow")

        forwarding = Forwarding(None, Leader("http://leader"), lambda *_: None, catch_up=catch_up)  # type: ignore[arg-type]

        async def send(*_: object) -> Response:
            return Response(status_code=status)

        forwarding._send = send  # type: ignore[method-assign]
        scope = {"type": "http", "method": "PUT", "path": "/connectors/c/pause", "query_string": b"", "headers": []}
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def take(message: Any) -> None:
            sent.append(message)

        await forwarding(scope, receive, take)
        return int(sent[0]["status"])

    assert [anyio.run(told, *case) for case in ((202, False), (202, True), (409, False))] == [202, 202, 409]
    assert read == ["on", "on"], "what was refused has changed nothing"
