"""Requests at the border of HTTP: media types, methods, bodies that are none, and names with odd characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.peer.steps import SOURCE_CONFIG, Ask, Settle, States, Step

JSON_BODY = {"Content-Type": "application/json"}


def code(body: Any) -> Any:
    """Only the number: the text is the JVM's own, for which ours has a sentence."""
    return body.get("error_code") if isinstance(body, dict) else body


def _allow(body: Any) -> Any:
    return sorted(part.strip() for part in body.split(",")) if isinstance(body, str) else body


RESOURCES = (
    "/",
    "/health",
    "/connectors",
    "/connectors/nobody",
    "/connectors/nobody/config",
    "/connectors/nobody/status",
    "/connectors/nobody/restart",
    "/connectors/nobody/pause",
    "/connectors/nobody/stop",
    "/connectors/nobody/tasks",
    "/connectors/nobody/tasks/0/status",
    "/connectors/nobody/tasks/0/restart",
    "/connectors/nobody/topics",
    "/connectors/nobody/topics/reset",
    "/connectors/nobody/offsets",
    "/connector-plugins",
    "/connector-plugins/FileStreamSource/config",
    "/connector-plugins/FileStreamSource/config/validate",
    "/admin/loggers",
    "/admin/loggers/root",
)


def _methods() -> Iterator[Ask]:
    for path in RESOURCES:
        yield Ask(f"options {path}", "OPTIONS", path, headers={"Accept": "*/*"}, only=_allow)
        yield Ask(f"options as json {path}", "OPTIONS", path, only=_allow)
        yield Ask(f"trace {path}", "TRACE", path)
        yield Ask(f"accept text {path}", "GET", path, headers={"Accept": "text/html"})
    for path in ("/", "/connectors", "/connectors/nobody", "/connectors/nobody/pause", "/connector", "/connectors/"):
        yield Ask(f"head {path}", "HEAD", path)
    for method, path in (
        ("PUT", "/connectors"),
        ("DELETE", "/connectors"),
        ("POST", "/connectors/nobody"),
        ("PUT", "/connectors/nobody"),
        ("PATCH", "/connectors/nobody"),
        ("GET", "/connectors/nobody/pause"),
        ("POST", "/connectors/nobody/pause"),
        ("PUT", "/connectors/nobody/restart"),
        ("DELETE", "/connectors/nobody/status"),
        ("POST", "/connectors/nobody/offsets"),
        ("GET", "/connector-plugins/FileStreamSource/config/validate"),
        ("POST", "/connector-plugins/FileStreamSource/config/validate"),
        ("POST", "/"),
        ("DELETE", "/admin/loggers/root"),
        ("PUT", "/health"),
    ):
        yield Ask(f"wrong method {method} {path}", method, path)
    for path in (
        "/connectors/nobody/tasks-config",
        "/connectors/nobody/tasks/0",
        "/connectors/nobody/tasks/0/config",
        "/connector-plugins/FileStreamSource",
        "/connector-plugins/FileStreamSource/config/x",
        "/admin",
        "/healthy",
        "/connectors/nobody/statuses",
        "/CONNECTORS",
        "/connectors/nobody/tasks/0/restart/x",
        "/favicon.ico",
    ):
        yield Ask(f"no such path {path}", "GET", path)


def _media_types() -> Iterator[Ask]:
    text = {"Content-Type": "text/plain", "Accept": "application/json"}
    for method, path in (
        ("POST", "/connectors"),
        ("PUT", "/connectors/nobody/config"),
        ("PATCH", "/connectors/nobody/config"),
        ("PUT", "/connectors/nobody/pause"),
        ("PUT", "/connectors/nobody/stop"),
        ("POST", "/connectors/nobody/restart"),
        ("POST", "/connectors/nobody/tasks/0/restart"),
        ("PATCH", "/connectors/nobody/offsets"),
        ("DELETE", "/connectors/nobody/offsets"),
        ("DELETE", "/connectors/nobody"),
        ("PUT", "/connectors/nobody/topics/reset"),
        ("PUT", "/connector-plugins/FileStreamSource/config/validate"),
        ("PUT", "/admin/loggers/root"),
        ("GET", "/connectors/nobody"),
    ):
        where = f"{method} {path}"
        yield Ask(f"text body {where}", method, path, raw=b"x", headers=text)
        yield Ask(f"untyped body {where}", method, path, raw=b"{}", headers={})
        yield Ask(f"garbage body {where}", method, path, raw=b"{nonsense", headers=JSON_BODY, only=code)
        yield Ask(f"no body {where}", method, path, headers=JSON_BODY, only=code)
        yield Ask(f"null body {where}", method, path, raw=b"null", headers=JSON_BODY, only=code)
        yield Ask(f"list body {where}", method, path, raw=b"[]", headers=JSON_BODY, only=code)
    for accept in (
        "application/json;q=0.5, text/html",
        "application/*",
        "*/*;q=0.1",
        "text/*",
        "application/json;q=0",
        "application/vnd.x+json",
        "Application/JSON",
        "",
    ):
        yield Ask(f"accept '{accept}'", "GET", "/connectors/nobody", headers={"Accept": accept})
    for kind in (
        "application/json; charset=utf-8",
        "application/json;charset=ISO-8859-1",
        "APPLICATION/JSON",
        "application/*",
        "text/json",
        "application/vnd.kafka+json",
        "application/x-www-form-urlencoded",
    ):
        yield Ask(f"type '{kind}'", "PUT", "/connectors/nobody/pause", raw=b"{}", headers={"Content-Type": kind})
        yield Ask(f"type '{kind}' read", "PUT", "/connectors/bad/config", raw=b"{}", headers={"Content-Type": kind})


def _bodies() -> Iterator[Ask]:
    create, config = "/connectors", "/connectors/bad/config"
    for name, raw in (
        ("unknown field", b'{"name": "bad", "config": {}, "more": 1}'),
        ("config as text", b'{"name": "bad", "config": "x"}'),
        ("config as list", b'{"name": "bad", "config": []}'),
        ("value as list", b'{"name": "bad", "config": {"a": [1]}}'),
        ("value as object", b'{"name": "bad", "config": {"a": {}}}'),
        ("trailing garbage", b'{"name": "bad", "config": {}} x'),
        ("no config", b'{"name": "bad"}'),
        ("no name", b'{"config": {"connector.class": "FileStreamSource"}}'),
        ("null config", b'{"name": "bad", "config": null}'),
        ("bad state", b'{"name": "bad", "config": {}, "initial_state": "RUN"}'),
        ("state as number", b'{"name": "bad", "config": {}, "initial_state": 1}'),
        ("name as object", b'{"name": {}, "config": {}}'),
        ("single quotes", b"{'name': 'bad', 'config': {}}"),
        ("trailing comma", b'{"name": "bad", "config": {},}'),
        ("comment", b'{"name": "bad", /* x */ "config": {}}'),
        ("not a number", b'{"name": "bad", "config": {"a": NaN}}'),
        ("broken UTF-8", b'{"name": "b\xffd", "config": {}}'),
        ("text", b'"x"'),
        ("number", b"1"),
    ):
        yield Ask(f"create with {name}", "POST", create, raw=raw, headers=JSON_BODY, only=code)
    for name, raw in (
        ("blank", b"   "),
        ("a text", b'"x"'),
        ("a value that is a list", b'{"a": [1]}'),
        ("a value that is an object", b'{"a": {"b": 1}}'),
        ("trailing garbage", b"{} {}"),
    ):
        yield Ask(f"config that is {name}", "PUT", config, raw=raw, headers=JSON_BODY, only=code)
        yield Ask(f"patch that is {name}", "PATCH", config, raw=raw, headers=JSON_BODY, only=code)
        yield Ask(
            f"validate {name}",
            "PUT",
            "/connector-plugins/FileStreamSource/config/validate",
            raw=raw,
            headers=JSON_BODY,
            only=code,
        )


def _names() -> Iterator[Step]:
    for name in ("%2F", "a%2Fb", "%25", "%5C", "%00"):
        yield Ask(f"coded name {name}", "GET", f"/connectors/{name}")
    for name in (
        ";a=b",
        "nobody;a=b",
        "nobody;a=b/status",
        "no%3Bbody",
        "no%20body",
        "no+body",
        "n%C3%A9",
        "n%C2%A0y",
        "n%EF%BF%BFy",
        "a%7Bb%7D",
        "a.b-c_d~e",
        "@x:y",
        "%E2%82%AC",
    ):
        yield Ask(f"odd name {name}", "GET", f"/connectors/{name}")
    for number in ("0x1", "-1", "+0", "00", "1.0", "99999999999", "2147483647", "%201", "\u0661".encode().hex()):
        yield Ask(f"odd task {number}", "GET", f"/connectors/nobody/tasks/{number}/status")
    for path in (
        "//connectors",
        "/connectors//",
        "/connectors/nobody//status",
        "/./connectors",
        "/connectors/../health",
    ):
        yield Ask(f"odd path {path}", "GET", path, only=lambda body: body if isinstance(body, dict) else None)
    long = "l" * 1500 + "-{x}"
    stopped = {"name": long, "config": {**SOURCE_CONFIG, "file": "{dir}/none"}, "initial_state": "STOPPED"}
    yield Ask("create a long name", "POST", "/connectors", stopped)
    yield States(long, ("STOPPED",))
    yield Ask("status of a long name", "GET", f"/connectors/{long}/status")
    yield Ask("delete a long name", "DELETE", f"/connectors/{long}")
    for number, name in enumerate(
        ("  blanks {x}  ", "with space {x}", "dots.{x}", "ünïcode-{x}", "semi;{x}", "q?{x}#")
    ):
        file = {**SOURCE_CONFIG, "file": f"{{dir}}/none-{number}", "topic": "odd-{x}"}
        yield Ask(f"create '{name}'", "POST", "/connectors", {"name": name, "config": file})
    yield Settle()  # Kafka Connect answers 500 while the cluster takes the last one up
    for path in ("with%20space%20{x}", "dots.{x}", "%C3%BCn%C3%AFcode-{x}", "semi%3B{x}", "q%3F{x}%23", "blanks%20{x}"):
        yield Ask(f"get {path}", "GET", f"/connectors/{path}/config")
        yield Ask(f"delete {path}", "DELETE", f"/connectors/{path}")
    for name in ("\u0000", "x\u007f", "x\u0085", "tab\tin", "trailing\t", "", " ", "\u00a0"):
        config = {**SOURCE_CONFIG, "connector.class": "FileStreamSource", "tasks.max": "0"}
        yield Ask(f"create {name!r}", "POST", "/connectors", {"name": name, "config": config})


def _scalars() -> Iterator[Step]:
    raw = (
        b'{"name": "scalar-{x}", "config": {"connector.class": "FileStreamSource", "tasks.max": 1, "topic": "t", '
        b'"file": "/nowhere", "a": 1.50, "b": 1e3, "c": true, "d": -0.0, "e": 123456789012345678901234567890'
        b', "f": "x", '
        b'"f": "last"}, "initial_state": "stopped"}'
    )
    yield Ask("create with scalars", "POST", "/connectors", raw=raw, headers=JSON_BODY)
    yield Ask("scalars", "GET", "/connectors/scalar-{x}/config")
    yield States("scalar-{x}", ("STOPPED",))
    yield Ask("patch name away", "PATCH", "/connectors/scalar-{x}/config", {"name": None})
    yield Ask(
        "patch with BOM", "PATCH", "/connectors/scalar-{x}/config", raw=b'\xef\xbb\xbf{"a": null}', headers=JSON_BODY
    )
    yield Ask(
        "put with null name",
        "PUT",
        "/connectors/scalar-{x}/config",
        {"name": None, "connector.class": "FileStreamSource", "topic": "t", "file": "/nowhere"},
    )
    yield Ask(
        "put with initial_state",
        "PUT",
        "/connectors/scalar-{x}/config",
        {"initial_state": "PAUSED", "connector.class": "FileStreamSource", "topic": "t", "file": "/nowhere"},
    )
    yield Ask("patch name to another", "PATCH", "/connectors/scalar-{x}/config", {"name": "else"})
    yield Ask("delete scalars", "DELETE", "/connectors/scalar-{x}")


STEPS: tuple[Step, ...] = (*_methods(), *_media_types(), *_bodies(), *_names(), *_scalars())
