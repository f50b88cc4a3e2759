"""`/connectors/{c}/tasks`."""

from __future__ import annotations


def test_tasks_are_listed_with_their_raw_configurations(ask):
    assert ask("GET", "/connectors/c/tasks").json == [
        {"id": {"connector": "c", "task": 0}, "config": {"task.class": "T", "n": "0"}},
        {"id": {"connector": "c", "task": 1}, "config": {"task.class": "T", "n": "1"}},
    ]


def test_a_tasks_status_has_its_number(ask):
    answer = ask("GET", "/connectors/c/tasks/1/status").json
    assert answer == {"id": 1, "state": "RUNNING", "worker_id": "127.0.0.1:8083"}


def test_an_unknown_task_is_404(ask):
    answer = ask("GET", "/connectors/c/tasks/7/status")
    assert (answer.status, answer.message) == (404, "No status found for task c-7")


def test_a_text_in_the_place_of_a_task_number_is_404_with_a_media_type(ask):
    answer = ask("GET", "/connectors/c/tasks/x/status")
    assert (answer.status, answer.message) == (404, "HTTP 404 Not Found")
    assert answer.headers["content-type"] == "application/json"


def test_restarting_a_task_is_204(ask, herder):
    assert ask("POST", "/connectors/c/tasks/1/restart").status == 204
    assert herder.calls == [("restart_task", "c", 1)]


def test_tasks_of_an_unknown_connector_are_404(ask):
    assert ask("GET", "/connectors/x/tasks").message == "Connector x not found"
    assert ask("POST", "/connectors/x/tasks/0/restart").message == "Unknown connector: x"
