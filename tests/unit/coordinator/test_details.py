"""What the machine tells of a connector beyond its states."""

from __future__ import annotations

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.coordinator import events as ev
from wherry.coordinator.api import TargetState
from wherry.coordinator.details import detail, lease_info
from wherry.coordinator.figures import Totals
from wherry.coordinator.lease import Lease
from wherry.coordinator.machine import Machine

POLICY = ev.RestartPolicy(enabled=True, restarts_max=3, base_ms=1_000, delay_ms_max=1_000)


def machine() -> Machine:
    made = Machine()
    spec = ev.ConnectorSpec("c", ev.Kind.SOURCE, {"name": "c"}, restart=POLICY)
    made.step(ev.EngineUp(), 0)
    made.step(ev.ConnectorPut("c", spec, TargetState.STARTED), 0)
    return made


def test_a_connector_that_is_planned_says_so() -> None:
    book = machine().book("c")
    assert book is not None
    told = detail(book, {}, {}, 10)
    assert (told.name, told.state, told.plan_wanted, told.tasks) == ("c", "planning", True, ())


def test_a_failed_plan_shows_why_and_when_it_is_tried_again() -> None:
    made = machine()
    book = made.book("c")
    assert book is not None
    made.step(ev.PlanFailed("c", book.plan_id, ev.Failure(ErrorClass.TRANSIENT, "no such host")), 100)
    told = detail(book, {0: Totals()}, {}, 200)
    assert (told.failure, told.restarts) == ("no such host", 1)
    assert told.retry_in_ms is not None
    assert 0 < told.retry_in_ms <= 1_000


def lease_of(made: Machine) -> Lease:
    (found,) = made.leases()
    return found


def test_a_lease_tells_where_it_runs_once_a_worker_has_taken_it_up() -> None:
    made = machine()
    book = made.book("c")
    assert book is not None
    made.step(ev.Planned("c", book.plan_id, ev.SourcePlan(Plan(tasks=(Work("0"),)))), 10)
    before = lease_of(made)
    told = lease_info(before, None)
    assert (told.phase, told.worker, told.host, told.executor) == ("launching", "", "", "")
    made.step(ev.LeaseOpening("c", before.id, before.generation, 0, 1, "node-3.example:4711", "7"), 20)
    told = lease_info(lease_of(made), None)
    assert (told.worker, told.host, told.executor) == ("node-3.example:4711", "node-3.example", "7")


def test_a_lease_beside_the_driver_says_so() -> None:
    made = machine()
    book = made.book("c")
    assert book is not None
    made.step(ev.Planned("c", book.plan_id, ev.SourcePlan(Plan(tasks=(Work("0"),)))), 10)
    before = lease_of(made)
    made.step(ev.LeaseOpening("c", before.id, before.generation, 0, 1, "here:1", ""), 20)
    assert lease_info(lease_of(made), None).executor == "driver"
