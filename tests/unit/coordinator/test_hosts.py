"""What is asked of a sidecar once more, and for how long."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError, ConnectorBugError, TransientError, WherryError
from wherry.coordinator.hosts import ONCE_MORE_S_MIN, is_gone, once_more

GONE = TransientError("It can't be reached.", reason="UNAVAILABLE")


class Asked:
    """Sidecars that answer in this order, each after some seconds; an error is raised."""

    def __init__(self, *answers: str | WherryError, took_s: float = 0.0) -> None:
        self.answers, self.took_s = list(answers), took_s
        self.now_s = 100.0
        self.left_s: list[float] = []

    def ask(self, left_s: float) -> str:
        self.left_s.append(left_s)
        self.now_s += self.took_s
        answer = self.answers.pop(0)
        if isinstance(answer, WherryError):
            raise answer
        return answer

    def result(self, within_s: float = 10.0) -> str:
        return once_more(self.ask, is_gone, within_s=within_s, clock=lambda: self.now_s)


def test_an_answer_is_an_answer() -> None:
    asked = Asked("first", "second")
    assert asked.result() == "first"
    assert asked.left_s == [10.0]


def test_another_is_asked_in_what_is_left_of_the_time_when_the_first_has_ended() -> None:
    asked = Asked(GONE, "second", took_s=4.0)
    assert asked.result() == "second"
    assert asked.left_s == [10.0, 6.0]


@pytest.mark.parametrize("reason", ["UNAVAILABLE", "CANCELLED", "KILLED", "STOPPED"])
def test_these_tell_of_an_end(reason: str) -> None:
    assert Asked(TransientError("x", reason=reason), "second").result() == "second"


def test_a_third_is_never_asked() -> None:
    asked = Asked(GONE, GONE, "third")
    with pytest.raises(TransientError):
        asked.result()
    assert asked.answers == ["third"]


@pytest.mark.parametrize(
    "error",
    [
        TransientError("The database is away."),
        TransientError("It didn't answer in time.", reason="DEADLINE_EXCEEDED"),
        ConfigError("no such table"),
        ConnectorBugError("it ended with code 1"),
    ],
)
def test_what_another_would_say_as_well_is_asked_once(error: WherryError) -> None:
    asked = Asked(error, "second")
    with pytest.raises(type(error)):
        asked.result()
    assert asked.answers == ["second"]


def test_nobody_is_asked_when_the_time_is_over() -> None:
    asked = Asked(GONE, "second", took_s=10.0 - ONCE_MORE_S_MIN / 2)
    with pytest.raises(TransientError):
        asked.result()
    assert asked.answers == ["second"]
