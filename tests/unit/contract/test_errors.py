"""Errors: every class has its exception, its code and its way back."""

from __future__ import annotations

import grpc
import pytest

from wherry.connector.v1 import common_pb2
from wherry.contract.errors import (
    ERROR_CLASSES_BY_CODE,
    ERROR_TYPES,
    GRPC_CODES,
    ConnectorBugError,
    ErrorClass,
    RecordRejectedError,
    TransientError,
    error_for,
)


def test_classes_have_the_numbers_of_the_proto() -> None:
    proto = {name.removeprefix("ERROR_CLASS_"): number for name, number in common_pb2.ErrorClass.items() if number}
    assert proto == {member.name: member.value for member in ErrorClass}


@pytest.mark.parametrize("error_class", ErrorClass)
def test_every_class_has_a_code_and_an_exception_of_its_own(error_class: ErrorClass) -> None:
    assert ERROR_CLASSES_BY_CODE[GRPC_CODES[error_class]] is error_class
    made = error_for(error_class, "A sentence.")
    assert type(made) is ERROR_TYPES[error_class]
    assert (made.error_class, made.message, made.reason) == (error_class, "A sentence.", error_class.name)


def test_codes_differ_by_class() -> None:
    assert len(set(GRPC_CODES.values())) == len(ErrorClass)


def test_every_code_but_ok_and_a_missing_one_is_told_apart() -> None:
    assert set(grpc.StatusCode) - set(ERROR_CLASSES_BY_CODE) == {grpc.StatusCode.OK}


@pytest.mark.parametrize("number", [0, 99])
def test_a_class_that_is_none_counts_as_a_bug(number: int) -> None:
    assert type(error_for(number, "x")) is ConnectorBugError


def test_a_reason_of_its_own_is_kept() -> None:
    assert TransientError("x", reason="CONNECTION_REFUSED").reason == "CONNECTION_REFUSED"


def test_a_rejected_record_may_ask_to_be_offered_again() -> None:
    error = RecordRejectedError("x", error_class=ErrorClass.TRANSIENT)
    assert error.error_class is ErrorClass.TRANSIENT
    assert RecordRejectedError("x").error_class is ErrorClass.SCHEMA
