"""Wherry's own keys for records that fail are checked when they are given."""

from __future__ import annotations

import pytest

from wherry.contract.description import Role
from wherry.coordinator.config.errorkeys import problems

STOP, AMONG = "wherry.errors.stop.failures", "wherry.errors.stop.records"
QUEUE = "wherry.errors.deadletterqueue.topic.name"


@pytest.mark.parametrize("role", [Role.SOURCE, Role.SINK])
def test_what_is_not_given_is_not_looked_at(role: Role) -> None:
    assert problems({"name": "c", "errors.tolerance": "all"}, role) == {}


@pytest.mark.parametrize(
    "config", [{STOP: "5"}, {STOP: "5", AMONG: "5"}, {STOP: "0", AMONG: "1"}, {QUEUE: "dead.letters-1_x"}]
)
def test_good_values_pass(config: dict[str, str]) -> None:
    assert problems(config, Role.SOURCE) == {}


@pytest.mark.parametrize(
    ("config", "key", "text"),
    [
        ({STOP: "-1"}, STOP, "Value must be at least 0"),
        ({STOP: "few"}, STOP, "Not a number of type INT"),
        ({AMONG: "0"}, AMONG, "Value must be at least 1"),
        ({STOP: "6", AMONG: "5"}, STOP, "can never be reached among the last 5 records"),
        ({STOP: "1001"}, STOP, "can never be reached among the last 1000 records"),
        ({QUEUE: "no spaces"}, QUEUE, "must match the pattern"),
        ({"wherry.errors.deadletterqueue.context.headers.enable": "maybe"}, None, "Expected value to be either true"),
    ],
)
def test_bad_values_are_told_by_key(config: dict[str, str], key: str | None, text: str) -> None:
    found = problems(config, Role.SOURCE)
    assert list(found) == [key or next(iter(config))]
    assert text in next(iter(found.values()))[0]


def test_a_sink_is_told_its_own_key() -> None:
    assert problems({QUEUE: "dead"}, Role.SINK)[QUEUE] == [
        f"{QUEUE} is for sources; a sink's key is errors.deadletterqueue.topic.name."
    ]
