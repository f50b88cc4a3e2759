"""Error classes of statuses, and calls by name."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from wherry.conformance.failure import Failure, UsageError
from wherry.conformance.wire import DETAILS_KEY, Wire, error_class, expect_error, parse, plain
from wherry.connector.v1 import plugin_pb2


class Refusal(grpc.RpcError):
    def __init__(self, reason: str | None, *, domain: str = "wherry.dev", text: str = "It is wrong.") -> None:
        status = status_pb2.Status()
        if reason is not None:
            detail = any_pb2.Any()
            detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
            status.details.append(detail)
        self._metadata = ((DETAILS_KEY, status.SerializeToString()),)
        self._text = text

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        return self._metadata

    def details(self) -> str:
        return self._text

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.ABORTED


def test_the_class_is_the_reason_within_our_domain() -> None:
    assert error_class(Refusal("FENCED")) == "FENCED"
    assert error_class(Refusal("FENCED", domain="example.org")) is None
    assert error_class(Refusal(None)) is None


def test_an_error_of_an_allowed_class_passes() -> None:
    expect_error(Refusal("FENCED"), ["CONFIG", "FENCED"])
    expect_error(Refusal("BUG"), ["any"])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (Refusal("BUG"), "of the class BUG .* and not FENCED"),
        (Refusal(None), "carries no google.rpc.ErrorInfo"),
        (Refusal("FENCED", text=""), "has no text for a person"),
    ],
)
def test_another_error_is_a_failure(error: grpc.RpcError, sentence: str) -> None:
    with pytest.raises(Failure, match=sentence):
        expect_error(error, ["FENCED"])


def test_requests_are_mappings_with_the_names_of_the_proto() -> None:
    request = parse(plugin_pb2.ConfigureRequest(), {"class_name": "A", "generation": 3})
    assert (request.class_name, request.generation) == ("A", 3)
    assert plain(request) == {"class_name": "A", "generation": "3"}
    with pytest.raises(UsageError, match="ConfigureRequest can't be made of"):
        parse(plugin_pb2.ConfigureRequest(), {"colour": "red"})


def test_a_call_that_does_not_exist_is_refused() -> None:
    wire = Wire("unix:///nowhere")
    with pytest.raises(UsageError, match=r"no call PluginService\.Dance"):
        wire.call("PluginService.Dance", {})
    wire.close()
