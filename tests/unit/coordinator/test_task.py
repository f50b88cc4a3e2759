"""The task's machine: every edge of the table, no other, and when a failure is followed by a restart."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.errors import ErrorClass
from wherry.coordinator.api import State
from wherry.coordinator.events import Failure, RestartPolicy
from wherry.coordinator.task import (
    ENDING,
    LEASED,
    NEEDS_A_PERSON,
    SHOWN,
    TRANSITIONS,
    Task,
    TaskInput,
    TaskState,
    restart_delay_ms,
    step,
)

POLICY = RestartPolicy(restarts_max=3)
BROKEN = Failure(ErrorClass.BUG, "broken")
ABSENT = sorted(set(itertools.product(TaskState, TaskInput)) - TRANSITIONS.keys(), key=str)


def stepped(state: TaskState, given: TaskInput) -> Task:
    return step(Task(0, state), given, 0, failure=BROKEN, policy=POLICY)


@pytest.mark.parametrize(("edge", "target"), TRANSITIONS.items(), ids=str)
def test_every_edge_of_the_table_is_taken(edge: tuple[TaskState, TaskInput], target: TaskState) -> None:
    assert stepped(*edge).state is target


@pytest.mark.parametrize("edge", ABSENT, ids=str)
def test_whatever_is_not_in_the_table_changes_nothing(edge: tuple[TaskState, TaskInput]) -> None:
    assert stepped(*edge) == Task(0, edge[0])


def test_every_state_can_be_reached_from_a_new_task() -> None:
    reached = {Task(0).state}
    while more := {target for (state, _), target in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(TaskState)


def test_a_lease_begins_with_launched_and_ends_with_an_input_that_says_so() -> None:
    begins = {given for (a, given), b in TRANSITIONS.items() if a not in LEASED and b in LEASED}
    ends = {given for (a, given), b in TRANSITIONS.items() if a in LEASED and b not in LEASED}
    assert begins == {TaskInput.LAUNCHED}
    assert ends == {TaskInput.ENDED, TaskInput.PARKED, TaskInput.FAILED, TaskInput.GAVE_UP}


def test_a_task_that_is_being_ended_has_a_lease() -> None:
    assert ENDING < LEASED


def test_only_states_that_kafka_connect_knows_are_shown() -> None:
    assert SHOWN.keys() == set(TaskState)
    assert {shown for shown in SHOWN.values() if shown} <= set(State)


@pytest.mark.parametrize("error_class", ErrorClass)
def test_what_only_a_person_can_change_is_not_tried_again(error_class: ErrorClass) -> None:
    failed = step(Task(0, TaskState.RUNNING), TaskInput.FAILED, 0, failure=Failure(error_class, "x"), policy=POLICY)
    assert (failed.state is TaskState.FAILED) == (error_class in NEEDS_A_PERSON)


def test_restarts_in_a_row_end_with_failed() -> None:
    task = Task(0)
    for _ in range(POLICY.restarts_max + 1):
        task = step(step(task, TaskInput.LAUNCHED, 0), TaskInput.OPENED, 0)
        task = step(task, TaskInput.FAILED, 0, failure=BROKEN, policy=POLICY)
        task = step(task, TaskInput.RETRY_DUE, 0)
    assert (task.state, task.failure) == (TaskState.FAILED, BROKEN)


def test_a_long_healthy_run_begins_the_count_anew() -> None:
    task = Task(0, TaskState.RUNNING, restarts=POLICY.restarts_max)
    failed = step(task, TaskInput.FAILED, POLICY.healthy_ms, failure=BROKEN, policy=POLICY)
    assert (failed.state, failed.restarts) == (TaskState.BACKOFF, 1)


def test_restarts_that_are_switched_off_leave_the_failure() -> None:
    off = RestartPolicy(enabled=False)
    failed = step(Task(0, TaskState.RUNNING), TaskInput.FAILED, 0, failure=BROKEN, policy=off)
    assert failed.state is TaskState.FAILED


def test_a_woken_task_goes_on_showing_running() -> None:
    parked = step(Task(0, TaskState.RUNNING), TaskInput.PARKED, 0)
    woken = step(parked, TaskInput.WOKEN, 0)
    assert [task.shown for task in (parked, woken, step(woken, TaskInput.LAUNCHED, 0))] == [State.RUNNING] * 3


def test_a_restarted_task_does_not_show_running_before_it_runs() -> None:
    parked = step(Task(0, TaskState.RUNNING), TaskInput.PARKED, 0)
    assert step(parked, TaskInput.RESTART, 0).shown is State.UNASSIGNED


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_waits_grow_and_are_bounded(restart: int, jitter: float) -> None:
    policy = RestartPolicy(base_ms=500, delay_ms_max=30_000)
    delay_ms = restart_delay_ms(restart, policy, jitter)
    assert policy.base_ms <= delay_ms <= policy.delay_ms_max * 1.1
    assert restart_delay_ms(restart + 1, policy, 0.0) >= restart_delay_ms(restart, policy, 0.0)


@given(st.lists(st.sampled_from(list(TaskInput)), max_size=40))
def test_a_stopped_task_stays_stopped_whatever_comes(inputs: list[TaskInput]) -> None:
    task = Task(0, TaskState.STOPPED)
    for given_input in inputs:
        task = step(task, given_input, 0, failure=BROKEN, policy=POLICY)
    assert task.state is TaskState.STOPPED
