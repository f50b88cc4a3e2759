"""`wherry connectors …` against a server that answers what it is told to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from wherry.coordinator.cli.app import run
from wherry.coordinator.cli.errors import ExitCode

STATUS = {
    "name": "c",
    "connector": {"state": "RUNNING", "worker_id": "w:1"},
    "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "w:1"}],
    "type": "source",
}
INFO = {"name": "c", "config": {"name": "c", "connector.class": "B"}, "tasks": [], "type": "source"}


@pytest.fixture
def server(monkeypatch):
    """A server; `answers` maps method and path to status and body, `asked` tells what came."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            key = f"{self.command} {self.path}"
            running.asked.append((key, json.loads(body) if body else None))
            missing = (404, {"error_code": 404, "message": "Connector x not found"})
            status, answer = running.answers.get(key, missing)
            self.send_response(status)
            content = b"" if answer is None else answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def log_message(self, *args):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    running.answers, running.asked = {}, []
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("WHERRY_URL", f"http://127.0.0.1:{running.server_port}")
    yield running
    running.shutdown()
    running.server_close()


def test_the_list_shows_states_and_running_tasks(server, capsys):
    server.answers["GET /connectors?expand=status&expand=info"] = (200, {"c": {"status": STATUS, "info": INFO}})
    assert run(["connectors", "list"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[1].split() == ["c", "source", "RUNNING", "1/1", "B"]


def test_json_is_what_the_server_said(server, capsys):
    server.answers["GET /connectors/c"] = (200, INFO)
    assert run(["connectors", "get", "c", "-o", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == INFO


def test_a_file_becomes_a_connector(server, capsys, tmp_path):
    (tmp_path / "c.json").write_text('{"name": "c", "config": {"a": 1}, "initial_state": "running"}')
    server.answers["POST /connectors"] = (201, INFO)
    assert run(["connectors", "create", str(tmp_path / "c.json")]) == ExitCode.OK
    sent = {"name": "c", "config": {"a": "1", "name": "c"}, "initial_state": "RUNNING"}
    assert server.asked == [("POST /connectors", sent)]


def test_a_refusal_is_its_message_and_a_code(server, capsys, tmp_path):
    (tmp_path / "c.properties").write_text("name=c")
    server.answers["POST /connectors"] = (409, {"error_code": 409, "message": "Connector c already exists"})
    assert run(["connectors", "create", str(tmp_path / "c.properties")]) == ExitCode.REFUSED
    assert capsys.readouterr().err == "Error: Connector c already exists\n"


def test_what_was_created_before_a_refusal_is_told(server, capsys, tmp_path):
    for name in ("c", "d"):
        (tmp_path / f"{name}.properties").write_text(f"name={name}")
    refusal = (409, {"error_code": 409, "message": "Connector d already exists"})

    class Once(dict):
        def get(self, key, missing):
            return (201, INFO) if len(server.asked) == 1 else refusal

    server.answers = Once()
    files = [str(tmp_path / f"{name}.properties") for name in ("c", "d")]
    assert run(["connectors", "create", *files]) == ExitCode.REFUSED
    assert capsys.readouterr() == ("Created c.\n", "Error: Connector d already exists\n")


def test_single_keys_are_patched(server):
    server.answers["PATCH /connectors/c/config"] = (200, INFO)
    assert run(["connectors", "update", "c", "--set", "a=b=c", "--unset", "d"]) == ExitCode.OK
    assert server.asked == [("PATCH /connectors/c/config", {"d": None, "a": "b=c"})]


def test_a_file_replaces_the_whole_configuration_under_the_given_name(server, tmp_path):
    (tmp_path / "c.properties").write_text("name=other\na=1")
    server.answers["PUT /connectors/c/config"] = (200, INFO)
    assert run(["connectors", "update", "c", str(tmp_path / "c.properties")]) == ExitCode.OK
    assert server.asked == [("PUT /connectors/c/config", {"name": "c", "a": "1"})]


@pytest.mark.parametrize("arguments", [["c"], ["c", "--set", "a"], ["c", "--set", "=a"]])
def test_an_update_without_a_change_is_a_wrong_command(server, arguments):
    assert run(["connectors", "update", *arguments]) == ExitCode.USAGE


def test_a_failed_part_shows_in_the_exit_code(server, capsys):
    failed = {"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": "boom\n\tat x"}
    server.answers["GET /connectors/c/status"] = (200, {**STATUS, "tasks": [failed]})
    assert run(["connectors", "status", "c"]) == ExitCode.FAILED
    assert capsys.readouterr().out.splitlines()[2].split() == ["task", "0", "FAILED", "w:1", "boom"]


@pytest.mark.parametrize("verb", ["pause", "resume", "stop"])
def test_a_verb_is_sent(server, verb):
    server.answers[f"PUT /connectors/my%2Fc/{verb}"] = (202, None)
    assert run(["connectors", verb, "my/c"]) == ExitCode.OK


def test_a_restart_says_what_is_meant(server):
    server.answers["POST /connectors/c/restart?includeTasks=true&onlyFailed=true"] = (202, STATUS)
    assert run(["connectors", "restart", "c", "--tasks", "--only-failed"]) == ExitCode.OK
    server.answers["POST /connectors/c/tasks/3/restart"] = (204, None)
    assert run(["connectors", "restart", "c", "--task", "3"]) == ExitCode.OK


def test_offsets_that_were_printed_can_be_given_back(server, capsys, tmp_path):
    shown = {"offsets": [{"partition": {"f": "é"}, "offset": {"n": 1}}]}
    server.answers["GET /connectors/c/offsets"] = (200, shown)
    server.answers["PATCH /connectors/c/offsets"] = (200, {"message": "altered"})
    run(["connectors", "offsets", "c", "-o", "json"])
    (tmp_path / "o.json").write_text(capsys.readouterr().out)
    assert run(["connectors", "offsets", "c", "--set", str(tmp_path / "o.json")]) == ExitCode.OK
    assert server.asked[-1] == ("PATCH /connectors/c/offsets", shown)


def test_offsets_are_shown_as_compact_json(server, capsys):
    server.answers["GET /connectors/c/offsets"] = (200, {"offsets": [{"partition": {"f": "é"}, "offset": {"n": 1}}]})
    run(["connectors", "offsets", "c"])
    assert capsys.readouterr().out.splitlines()[1].split() == ['{"f":"é"}', '{"n":1}']


def test_an_unknown_connector_is_not_found(server, capsys):
    assert run(["connectors", "delete", "x"]) == ExitCode.NOT_FOUND
    assert capsys.readouterr().err == "Error: Connector x not found\n"


def test_nobody_at_the_address_is_told_with_a_remedy(capsys):
    assert run(["connectors", "list", "--url", "http://127.0.0.1:1"]) == ExitCode.UNREACHABLE
    assert "No worker answers at http://127.0.0.1:1: Connection refused." in capsys.readouterr().err


def test_an_answer_that_is_no_json_is_told(server, capsys):
    server.answers["GET /connectors/c"] = (200, b"<html>")
    assert run(["connectors", "get", "c"]) == ExitCode.UNREACHABLE
    assert "is no Kafka Connect REST API" in capsys.readouterr().err


def test_an_address_that_is_no_url_is_a_wrong_command():
    assert run(["connectors", "list", "--url", "localhost"]) == ExitCode.USAGE
