"""A process that plans for several connectors: one that mixes them up is caught, by the cases themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from wherry.conformance.case import load_cases
from wherry.conformance.failure import Failure
from wherry.conformance.wire import DETAILS_KEY, ERROR_DOMAIN
from wherry.contract.shared import connector_in

CASES = {case.name: case for case in load_cases() if "shared_planning" in case.needs}


class RefusedError(grpc.RpcError):  # type: ignore[misc]  # grpc publishes no types
    """A status with an error class."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason = reason

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.ABORTED

    def details(self) -> str:
        return f"It is {self._reason}."

    def trailing_metadata(self) -> list[tuple[str, bytes]]:
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.ErrorInfo(domain=ERROR_DOMAIN, reason=self._reason))
        return [(DETAILS_KEY, status_pb2.Status(details=[detail]).SerializeToString())]


class Sidecar:
    """Plans for several, well or with a fault."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.generations: dict[str, int] = {}

    def call(self, name: str, request: Mapping[str, Any], *, metadata: Sequence[tuple[str, Any]]) -> None:
        about = "all" if self.fault == "one for all" else connector_in(metadata)
        if name.endswith(".Configure"):
            self._configure(about, request)
        elif name.endswith(".Stop"):
            if self.fault == "stop ends all":
                self.generations.clear()
            if self.fault != "stop is not heard":
                self.generations.pop(about, None)
        elif about not in self.generations and not (self.fault == "anybody plans" and name.endswith(".Plan")):
            raise RefusedError("BUG")

    def _configure(self, about: str, request: Mapping[str, Any]) -> None:
        if about not in ("all", request["connector"]) and self.fault != "names are not compared":
            raise RefusedError("BUG")
        known = max(self.generations.values(), default=0) if self.fault == "one generation" else 0
        if request["generation"] < max(known, self.generations.get(about, 0)) and self.fault != "no fencing":
            raise RefusedError("FENCED")
        self.generations[about] = request["generation"]


def run(case: str, fault: str = "") -> None:
    running: Any = SimpleNamespace(
        connector="conformance-1",
        class_name="A",
        generation=100,
        config=lambda changes: (dict(changes), {}),
        session=SimpleNamespace(wire=Sidecar(fault)),
    )
    for step in CASES[case].steps:
        step.run(running)


@pytest.mark.parametrize("case", CASES)
def test_a_sidecar_that_keeps_connectors_apart_passes(case: str) -> None:
    run(case)


@pytest.mark.parametrize(
    ("fault", "case", "sentence"),
    [
        ("one for all", "l2-shared-planning", "Probe about two failed"),
        ("stop ends all", "l2-shared-planning", "Probe about two failed"),
        ("stop is not heard", "l2-shared-planning", "Probe about one answered; it should have been refused"),
        ("stop is not heard", "l2-shared-planning-plan", "Plan about two answered"),
        ("anybody plans", "l2-shared-planning-plan", "Plan about two answered"),
        ("one generation", "l2-shared-planning-fencing", "Configure about one failed"),
        ("no fencing", "l2-shared-planning-fencing", "Configure about two answered; it should have been refused"),
        ("names are not compared", "l2-shared-planning-stranger", "Configure about one answered"),
    ],
)
def test_one_that_mixes_them_up_is_caught(fault: str, case: str, sentence: str) -> None:
    with pytest.raises(Failure, match=sentence):
        run(case, fault)
