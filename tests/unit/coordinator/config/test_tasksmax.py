"""Numbers of tasks that nobody can mean are refused or cut."""

from __future__ import annotations

import pytest

from wherry.contract.description import Role
from wherry.coordinator.config.tasksmax import TASKS_MAX, problems, tasks_max


@pytest.mark.parametrize(
    ("text", "number"),
    [(None, 1), ("7", 7), ("0", 1), ("x", 1), (str(TASKS_MAX), TASKS_MAX), ("2147483647", TASKS_MAX)],
)
def test_a_number_is_cut_to_what_can_be_kept(text, number):
    assert tasks_max({} if text is None else {"tasks.max": text}) == number


def test_a_sink_that_asks_for_more_is_refused_and_a_source_is_not():
    absurd = {"tasks.max": "2147483647"}
    assert problems({"tasks.max": str(TASKS_MAX)}, Role.SINK) == problems(absurd, Role.SOURCE) == {}
    assert problems(absurd, Role.SINK) == {
        "tasks.max": [
            "Invalid value 2147483647 for configuration tasks.max: Value must be no more than 10000, the tasks a sink "
            "can have here"
        ]
    }
