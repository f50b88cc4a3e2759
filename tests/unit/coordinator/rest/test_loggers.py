"""`/admin/loggers`."""

from __future__ import annotations

import logging

import pytest

from wherry.coordinator.rest.app import App

NAME = "wherry.test.loggers"


@pytest.fixture(autouse=True)
def _loggers():
    for name in (NAME, f"{NAME}.child"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    yield
    for name in (NAME, f"{NAME}.child"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_all_loggers_are_listed_by_name_with_the_root(ask):
    listed = ask("GET", "/admin/loggers").json
    assert list(listed) == sorted(listed)
    assert {"root", NAME} <= set(listed)
    assert set(listed["root"]) == {"level", "last_modified"}


def test_setting_a_level_reaches_the_children_and_tells_who_changed(ask):
    answer = ask("PUT", f"/admin/loggers/{NAME}", {"level": "trace"})
    assert (answer.status, answer.json) == (200, [NAME, f"{NAME}.child"])
    assert ask("GET", f"/admin/loggers/{NAME}.child").json["level"] == "TRACE"
    assert ask("GET", f"/admin/loggers/{NAME}").json["last_modified"] > 0


def test_setting_the_same_level_again_changes_nothing(ask):
    ask("PUT", f"/admin/loggers/{NAME}", {"level": "DEBUG"})
    assert ask("PUT", f"/admin/loggers/{NAME}", {"level": "DEBUG"}).json == []


def test_cluster_scope_answers_204(ask):
    assert ask("PUT", f"/admin/loggers/{NAME}?scope=cluster", {"level": "DEBUG"}).status == 204


def test_a_logger_that_is_off_is_not_listed(ask):
    ask("PUT", f"/admin/loggers/{NAME}", {"level": "OFF"})
    assert NAME not in ask("GET", "/admin/loggers").json


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"level": "NOPE"}, 404, "invalid log level 'NOPE'."),
        ({"level": 1}, 404, "invalid log level '1'."),
        ({}, 400, "Desired 'level' parameter was not specified in request."),
    ],
)
def test_a_wrong_level_is_refused(ask, body, status, message):
    answer = ask("PUT", f"/admin/loggers/{NAME}", body)
    assert (answer.status, answer.message) == (status, message)


def test_an_unknown_logger_is_404(ask):
    assert ask("GET", "/admin/loggers/no.such").message == "Logger no.such not found."


def test_admin_can_be_switched_off(herder, request_to):
    assert request_to(App(herder, version="1", admin=False), "GET", "/admin/loggers").status == 404
