"""`/connectors` answers with Kafka Connect's codes and bodies."""

from __future__ import annotations

import pytest

from wherry.coordinator.api import NotFoundError, State, TargetState


def test_the_list_is_names_only(ask):
    assert ask("GET", "/connectors").json == ["c"]


def test_the_list_expands_what_is_asked_for(ask):
    expanded = ask("GET", "/connectors?expand=status&expand=info").json
    assert set(expanded["c"]) == {"status", "info"}
    assert expanded["c"]["info"]["name"] == "c"


def test_an_unknown_expansion_adds_nothing(ask):
    assert ask("GET", "/connectors?expand=x").json == {"c": {}}


def test_a_connector_deleted_meanwhile_is_left_out_of_an_expanded_list(ask, herder):
    def gone(name):
        raise NotFoundError("gone")

    herder.status = gone
    assert ask("GET", "/connectors?expand=status").json == {}


def test_creating_answers_201_with_an_absolute_location(ask):
    answer = ask("POST", "/connectors", {"name": "my conn", "config": {"connector.class": "B", "tasks.max": 2}})
    assert answer.status == 201
    assert answer.headers["location"] == "http://worker:8083/connectors/my%20conn"
    assert answer.json == {
        "name": "my conn",
        "config": {"connector.class": "B", "tasks.max": "2", "name": "my conn"},
        "tasks": [{"connector": "my conn", "task": 0}, {"connector": "my conn", "task": 1}],
        "type": "source",
    }


def test_the_name_is_trimmed_on_post_and_not_on_put(ask, herder):
    ask("POST", "/connectors", {"name": " x ", "config": {}})
    ask("PUT", "/connectors/%20y/config", {})
    assert set(herder.configs) == {"c", "x", " y"}


def test_numbers_and_booleans_keep_their_spelling(ask, herder):
    body = b'{"name":"n","config":{"a":1.50,"b":1e3,"c":true,"d":123456789012345678901234567890,"e":-0.0}}'
    ask("POST", "/connectors", body)
    assert herder.configs["n"] == {
        "a": "1.50",
        "b": "1e3",
        "c": "true",
        "d": "123456789012345678901234567890",
        "e": "-0.0",
        "name": "n",
    }


@pytest.mark.parametrize(
    ("text", "state"),
    [("PAUSED", TargetState.PAUSED), ("stopped", TargetState.STOPPED), ("Running", TargetState.STARTED)],
)
def test_an_initial_state_is_taken_in_any_case(ask, herder, text, state):
    ask("POST", "/connectors", {"name": "n", "config": {}, "initial_state": text})
    assert herder.initial["n"] is state


def test_an_unknown_initial_state_is_500_as_the_real_worker_answers(ask):
    answer = ask("POST", "/connectors", {"name": "n", "config": {}, "initial_state": "x"})
    assert answer.status == 500
    assert "RUNNING, PAUSED, STOPPED" in answer.message


def test_an_existing_name_is_409(ask):
    answer = ask("POST", "/connectors", {"name": "c", "config": {}})
    assert (answer.status, answer.json) == (409, {"error_code": 409, "message": "Connector c already exists"})


def test_another_name_within_the_configuration_is_400(ask):
    answer = ask("POST", "/connectors", {"name": "n", "config": {"name": "zz"}})
    assert (answer.status, answer.message) == (
        400,
        "Connector name configuration (zz) doesn't match connector name in the URL (n)",
    )


def test_a_null_name_within_the_configuration_takes_the_urls(ask, herder):
    assert ask("PUT", "/connectors/n/config", {"name": None}).status == 201
    assert herder.configs["n"]["name"] == "n"


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b" ", b"{", b'{"name":"n","config":{}} x', b"[]", b'"x"', b'{"name":"n"}',
     b'{"name":"n","config":{"a":{}}}', b'{"name":"n","config":"x"}', b'{"name":"n","config":{},"x":1}',
     b'{"name":"n","config":{"a":NaN}}', b"\xff"],
)  # fmt: skip
def test_a_body_that_is_none_is_500_with_a_sentence(ask, body):
    answer = ask("POST", "/connectors", body)
    assert answer.status == 500
    assert len(answer.message) > 20
    assert "Traceback" not in answer.message


def test_a_byte_order_mark_is_fine(ask):
    assert ask("POST", "/connectors", b'\xef\xbb\xbf{"name":"n","config":{}}').status == 201


def test_of_a_member_given_twice_the_last_counts(ask, herder):
    ask("POST", "/connectors", b'{"name":"n","config":{"a":"1","a":"2"}}')
    assert herder.configs["n"]["a"] == "2"


def test_putting_a_configuration_is_201_for_a_new_connector_and_200_for_an_old_one(ask):
    assert ask("PUT", "/connectors/n/config", {"a": "1"}).status == 201
    answer = ask("PUT", "/connectors/n/config", {"a": "2"})
    assert answer.status == 200
    assert "location" not in answer.headers


def test_put_takes_an_initial_state_for_a_mere_key(ask, herder):
    ask("PUT", "/connectors/n/config", {"initial_state": "PAUSED"})
    assert herder.configs["n"]["initial_state"] == "PAUSED"
    assert herder.initial["n"] is None


def test_a_patch_removes_keys_that_are_null(ask, herder):
    herder.configs["c"]["a"] = "1"
    answer = ask("PATCH", "/connectors/c/config", {"a": None, "b": 2})
    assert answer.status == 200
    assert answer.json["config"] == {"name": "c", "connector.class": "B", "b": "2"}


def test_a_configuration_is_answered_flat(ask):
    assert ask("GET", "/connectors/c/config").json == {"name": "c", "connector.class": "B"}


def test_an_invalid_configuration_is_400(ask):
    assert ask("PUT", "/connectors/c/config", {"tasks.max": "dog"}).status == 400


def test_deleting_is_204_without_a_body(ask, herder):
    answer = ask("DELETE", "/connectors/c")
    assert (answer.status, answer.body, herder.configs) == (204, b"", {})


def test_a_status_leaves_out_empty_traces_and_sorts_tasks(ask):
    assert ask("GET", "/connectors/c/status").json == {
        "name": "c",
        "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "1"},
        "tasks": [
            {"id": 0, "state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "1"},
            {"id": 1, "state": "FAILED", "worker_id": "127.0.0.1:8083", "trace": "boom"},
        ],
        "type": "source",
    }


def test_a_connectors_own_status_holds_texts_only(ask, herder):
    herder.states["c"] = State.FAILED
    assert all(isinstance(value, str) for value in ask("GET", "/connectors/c/status").json["connector"].values())


@pytest.mark.parametrize(("verb", "status"), [("pause", 202), ("resume", 202), ("stop", 204)])
def test_a_verb_is_done_and_answered_without_a_body(ask, herder, verb, status):
    answer = ask("PUT", f"/connectors/c/{verb}")
    assert (answer.status, answer.body, herder.calls) == (status, b"", [(verb, "c")])


@pytest.mark.parametrize(
    ("query", "status", "flags"),
    [
        ("", 204, (False, False)),
        ("?includeTasks=true", 202, (True, False)),
        ("?includeTasks=True&onlyFailed=TRUE", 202, (True, True)),
        ("?onlyFailed=true", 202, (False, True)),
        ("?includeTasks=1", 204, (False, False)),
        ("?includeTasks=false&includeTasks=true", 204, (False, False)),
        ("?other=1", 204, (False, False)),
    ],
)
def test_a_restart_answers_by_its_flags(ask, herder, query, status, flags):
    answer = ask("POST", f"/connectors/c/restart{query}")
    assert answer.status == status
    assert herder.calls == [("restart", "c", *flags)]
    assert bool(answer.body) is (status == 202)


def test_a_body_nobody_asked_for_is_ignored(ask):
    assert ask("POST", "/connectors/c/restart", b'{"params":').status == 204


def test_topics_are_answered_under_the_connectors_name(ask):
    assert ask("GET", "/connectors/c/topics").json == {"c": {"topics": ["t"]}}
    assert ask("GET", "/connectors/x/topics").json == {"x": {"topics": []}}
    assert ask("PUT", "/connectors/c/topics/reset").status == 202


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/config", "Connector x not found"),
        ("PATCH", "/connectors/x/config", "Connector x not found"),
        ("DELETE", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/status", "No status found for connector x"),
        ("PUT", "/connectors/x/pause", "Unknown connector x"),
        ("PUT", "/connectors/x/resume", "Unknown connector x"),
        ("PUT", "/connectors/x/stop", "Unknown connector x"),
        ("POST", "/connectors/x/restart", "Unknown connector: x"),
    ],
)
def test_an_unknown_connector_is_404(ask, method, path, message):
    answer = ask(method, path, {} if method == "PATCH" else None)
    assert (answer.status, answer.json) == (404, {"error_code": 404, "message": message})


def test_an_unforeseen_error_is_500_with_its_kind_and_no_trace(ask, herder):
    herder.failing = RuntimeError("oops")
    answer = ask("GET", "/connectors")
    assert (answer.status, answer.message) == (500, "RuntimeError: oops")


@pytest.mark.parametrize("name", ["a/b", "a%b", "a\\b", "{x}", "a;b", "\u00fc \u00f1", "a?b#c"])
def test_a_name_of_any_characters_is_reached_where_its_location_says_and_deleted(ask, name):
    created = ask("POST", "/connectors", {"name": name, "config": {"a": "b"}})
    path = created.headers["location"].removeprefix("http://worker:8083")
    assert ask("GET", path).json["name"] == name
    assert ask("DELETE", path).status == 204
