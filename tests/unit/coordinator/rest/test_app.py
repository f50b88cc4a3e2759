"""Matching, media types and headers are Kafka Connect's."""

from __future__ import annotations

import threading

import anyio
import pytest
from tests.unit.coordinator.rest.conftest import asked

from wherry.coordinator.rest import app as app_module
from wherry.coordinator.rest import bodies
from wherry.coordinator.rest.app import App
from wherry.coordinator.rest.headers import HeaderRules, parse_rules


@pytest.mark.parametrize(
    "path", ["/connectors/", "/connectors/c/", "/connectors/c/status/", "/connectors/c;a=b/status"]
)
def test_trailing_slashes_and_matrix_parameters_are_ignored(ask, path):
    assert ask("GET", path).status == 200


def test_a_trailing_slash_is_no_redirect_on_writing_methods(ask):
    assert ask("POST", "/connectors/", {"name": "n", "config": {}}).status == 201
    assert ask("PUT", "/connectors/c/pause/").status == 202


def test_a_name_with_an_escaped_slash_or_percent_sign_can_be_reached(ask, herder):
    herder.configs["a/b%c"] = {}
    assert ask("GET", "/connectors/a%2Fb%25c").json["name"] == "a/b%c"


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nope", 404), ("POST", "/connectors/c", 405), ("TRACE", "/", 405)]
)
def test_an_unmatched_request_is_told_without_a_media_type(ask, method, path, status):
    answer = ask(method, path)
    assert answer.status == status
    assert answer.message.startswith(f"HTTP {status} ")
    assert "content-type" not in answer.headers


def test_a_body_of_another_type_is_415_even_where_no_body_is_read(ask):
    for path in ("/connectors/c/config", "/connectors/c/pause"):
        answer = ask("PUT", path, b"x", content_type="text/plain")
        assert answer.status == 415
        assert "content-type" not in answer.headers


def test_a_body_without_type_is_415_with_a_media_type(ask):
    answer = ask("PUT", "/connectors/c/config", b"{}", content_type="")
    assert answer.status == 415
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("accept", "status"),
    [("text/html", 406), ("application/json;q=0", 200), ("*/*", 200), ("text/html, application/*", 200)],
)
def test_whoever_does_not_take_json_is_refused(ask, accept, status):
    assert ask("GET", "/connectors", accept=accept).status == status


def test_head_has_the_length_and_no_body(ask):
    answer = ask("HEAD", "/connectors")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "5")


def test_options_lists_the_methods(ask):
    answer = ask("OPTIONS", "/connectors")
    assert (answer.headers["allow"], answer.body) == ("HEAD,GET,POST,OPTIONS", b"HEAD, GET, POST, OPTIONS")
    assert ask("OPTIONS", "/connectors", accept="application/json").body == b""


def test_the_root_tells_kafkas_version_and_a_header_ours(ask):
    answer = ask("GET", "/")
    assert answer.json == {"version": "4.3.1", "commit": "unknown", "kafka_cluster_id": "cluster"}
    assert answer.headers["wherry-version"] == "0.1.0"


@pytest.mark.parametrize(("state", "status"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)])
def test_health_is_told_by_the_status_code_too(ask, herder, state, status):
    herder.health_status = state
    answer = ask("GET", "/health")
    assert (answer.status, answer.json) == (status, {"status": state, "message": "fine"})


def test_leases_and_sidecars_are_listed_under_our_own_path(ask):
    assert ask("GET", "/wherry/v1/leases").json["leases"][0]["generation"] == 3
    assert ask("GET", "/wherry/v1/sidecars").json["sidecars"][0]["pid"] == 42
    assert ask("GET", "/wherry/v1/overlaps").json["overlaps"][0]["connectors"] == ["a", "b"]
    assert ask("GET", "/wherry/v1/restarts").json["restarts"][0]["next_in_ms"] == 1500
    assert ask("GET", "/wherry/v1/connectors/c/restarts").json["history"][0]["wait_ms"] == 4_000
    assert ask("GET", "/wherry/v1/connectors/nobody/restarts").status == 404


def test_a_herder_that_hangs_is_given_up_on(ask, herder, monkeypatch):
    monkeypatch.setattr(app_module, "REQUEST_DEADLINE_S", 0.05)
    may_end = threading.Event()
    herder.connectors = lambda: may_end.wait(60)
    try:
        answer = ask("GET", "/connectors")
    finally:
        may_end.set()
    assert answer.status == 500
    assert answer.message.startswith(
        "Request timed out. The worker is currently handling GET /connectors, which began at 2"
    )


@pytest.mark.parametrize(("method", "target"), [("GET", "/connectors"), ("PUT", "/connectors/c/pause")])
def test_a_burst_of_configurations_holds_up_nothing_else(herder, method, target):
    """More of them than may be under way, each of which takes long: what carries none is answered meanwhile."""
    at_once, most, lock, may_end = 0, 0, threading.Lock(), threading.Event()

    def put_config(name, config, **_):
        nonlocal at_once, most
        with lock:
            at_once, most = at_once + 1, max(most, at_once + 1)
        assert may_end.wait(120)
        with lock:
            at_once -= 1
        return True, herder.connector("c")

    herder.put_config = put_config
    app = App(herder, version="1")

    async def burst() -> tuple[int, list[int]]:
        statuses: list[int] = []

        async def create(number: int) -> None:
            name = f"c{number}"
            body = {"name": name, "config": {"name": name}}
            statuses.append((await asked(app, "POST", "/connectors", body)).status)

        async with anyio.create_task_group() as group:
            for number in range(5 * app_module.CONFIGURATIONS_AT_ONCE_MAX):
                group.start_soon(create, number)
            with anyio.fail_after(60):
                while most < app_module.CONFIGURATIONS_AT_ONCE_MAX:
                    await anyio.sleep(0.01)
                await anyio.sleep(0.2)  # so that one too many would have been seen
                answer = await asked(app, method, target)
            assert not statuses
            may_end.set()
        return answer.status, statuses

    status, created = anyio.run(burst)
    assert status in (200, 202)
    assert created == [201] * 5 * app_module.CONFIGURATIONS_AT_ONCE_MAX
    assert most == app_module.CONFIGURATIONS_AT_ONCE_MAX


def test_a_body_beyond_the_limit_is_413(ask, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_BYTES_MAX", 10)
    assert ask("POST", "/connectors", b"x" * 11).status == 413


def test_an_allowed_origin_is_told_so(herder, request_to):
    app = App(herder, version="1", rules=HeaderRules(allowed_origins=("http://ui",)))
    headers = request_to(app, "GET", "/", origin="http://ui").headers
    assert (headers["access-control-allow-origin"], headers["vary"]) == ("http://ui", "Origin")
    assert "access-control-allow-origin" not in request_to(app, "GET", "/", origin="http://else").headers
    assert request_to(app, "GET", "/").headers["vary"] == "Origin"


def test_a_browsers_question_is_answered_with_the_methods(herder, request_to):
    app = App(herder, version="1", rules=HeaderRules(allowed_origins=("*",), allowed_methods=("PUT",)))
    answer = request_to(app, "OPTIONS", "/connectors", origin="http://ui", access_control_request_method="PUT")
    assert answer.status == 200
    assert answer.headers["access-control-allow-methods"] == "PUT"
    assert answer.headers["access-control-allow-headers"] == "Content-Type"
    assert answer.headers["access-control-max-age"] == "60"


def test_methods_are_the_simple_ones_when_none_are_configured(herder, request_to):
    app = App(herder, version="1", rules=HeaderRules(allowed_origins=("http://ui",)))
    asked = {"origin": "http://ui", "access_control_request_method": "PUT"}
    assert request_to(app, "OPTIONS", "/", **asked).headers["access-control-allow-methods"] == "GET,POST,HEAD"
    other = request_to(app, "OPTIONS", "/", **{**asked, "origin": "http://else"})
    assert "access-control-allow-methods" not in other.headers


def test_configured_headers_are_added(herder, request_to):
    app = App(herder, version="1", rules=HeaderRules(rules=parse_rules("set X-Frame-Options:DENY, setDate Expires: 0")))
    headers = request_to(app, "GET", "/").headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["expires"].endswith("GMT")


@pytest.mark.parametrize(
    ("method", "path", "headers", "served"),
    [
        ("POST", "/connectors", {}, True),
        ("PUT", "/connectors/c/pause/", {}, True),
        ("POST", "/nowhere", {}, False),
        ("POST", "/connectors/c/status", {}, False),
        ("DELETE", "//connectors/c", {}, False),
        ("POST", "/connectors", {"content-length": "2", "content-type": "text/plain"}, False),
        ("POST", "/connectors", {"accept": "text/html"}, False),
    ],
)
def test_it_tells_which_requests_it_has_a_handler_for(herder, method, path, headers, served):
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    assert App(herder, version="1").serves(scope) is served
