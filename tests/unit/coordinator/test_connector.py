"""The connector's machine: every edge of the table, and no other."""

from __future__ import annotations

import itertools

import pytest

from wherry.contract.errors import ErrorClass
from wherry.coordinator.api import State, TargetState
from wherry.coordinator.connector import (
    SHOWN,
    TRANSITIONS,
    Connector,
    ConnectorInput,
    ConnectorState,
    create,
    step,
    target_input,
)
from wherry.coordinator.events import Failure, RestartPolicy

POLICY = RestartPolicy(restarts_max=2)
AWAY = Failure(ErrorClass.TRANSIENT, "away")
ABSENT = sorted(set(itertools.product(ConnectorState, ConnectorInput)) - TRANSITIONS.keys(), key=str)


def stepped(state: ConnectorState, given: ConnectorInput) -> Connector:
    return step(Connector("c", state), given, 0, failure=AWAY, policy=POLICY)


@pytest.mark.parametrize(("edge", "target"), TRANSITIONS.items(), ids=str)
def test_every_edge_of_the_table_is_taken(edge: tuple[ConnectorState, ConnectorInput], target: ConnectorState) -> None:
    assert stepped(*edge).state is target


@pytest.mark.parametrize("edge", ABSENT, ids=str)
def test_whatever_is_not_in_the_table_changes_nothing(edge: tuple[ConnectorState, ConnectorInput]) -> None:
    assert stepped(*edge) == Connector("c", edge[0])


def test_every_state_can_be_reached_from_a_new_connector() -> None:
    reached = {create("c", target).state for target in TargetState}
    while more := {target for (state, _), target in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(ConnectorState)


def test_every_state_but_the_last_can_be_deleted() -> None:
    assert {s for s in ConnectorState if (s, ConnectorInput.DELETE) not in TRANSITIONS} == {ConnectorState.DELETED}


def test_only_states_that_kafka_connect_knows_are_shown() -> None:
    assert SHOWN.keys() == set(ConnectorState)
    assert {shown for shown in SHOWN.values() if shown} <= set(State)


def test_a_failed_plan_is_tried_again_later_each_time_and_then_given_up() -> None:
    connector = create("c", TargetState.STARTED)
    waits = []
    for _ in range(2):
        connector = step(connector, ConnectorInput.PLAN_FAILED, 0, failure=AWAY, policy=POLICY)
        waits.append(connector.retry_at_ms)
        connector = step(connector, ConnectorInput.RETRY_DUE, 0)
    assert waits == [1_000, 3_000]
    assert step(connector, ConnectorInput.PLAN_FAILED, 0, failure=AWAY, policy=POLICY).state is ConnectorState.FAILED


def test_a_wrong_configuration_is_not_tried_again() -> None:
    wrong = Failure(ErrorClass.CONFIG, "no such table")
    connector = step(
        create("c", TargetState.STARTED), ConnectorInput.PLAN_FAILED, 0, failure=wrong, policy=RestartPolicy()
    )
    assert (connector.state, connector.failure) == (ConnectorState.FAILED, wrong)


def test_a_plan_that_succeeds_clears_the_failure() -> None:
    failed = step(create("c", TargetState.STARTED), ConnectorInput.PLAN_FAILED, 0, failure=AWAY, policy=POLICY)
    planned = step(step(failed, ConnectorInput.RETRY_DUE, 0), ConnectorInput.PLANNED, 0)
    assert (planned.failure, planned.restarts, planned.planned) == (None, 0, True)


@pytest.mark.parametrize("target", TargetState)
def test_every_wanted_state_is_an_input(target: TargetState) -> None:
    assert target_input(target) in {ConnectorInput.RESUME, ConnectorInput.PAUSE, ConnectorInput.STOP}
