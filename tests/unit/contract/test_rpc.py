"""Errors over gRPC and back, and the retry policy."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from wherry.contract import rpc
from wherry.contract.errors import (
    GRPC_CODES,
    ConfigError,
    ConnectorBugError,
    ErrorClass,
    FencedError,
    ThrottledError,
    TransientError,
    WherryError,
    error_for,
)
from wherry.contract.limits import STATUS_MESSAGE_BYTES_MAX


class Failed(grpc.RpcError):  # type: ignore[misc]  # grpc publishes no types
    """What a call raises, as far as it is looked at."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, bytes], ...] = ()) -> None:
        self._values = (code, details, trailing)

    def code(self) -> grpc.StatusCode:
        return self._values[0]

    def details(self) -> str:
        return self._values[1]

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        return self._values[2]


def there_and_back(error: BaseException) -> WherryError:
    status = rpc.status_of(error)
    return rpc.from_rpc_error(Failed(status.code, status.details, status.trailing_metadata))


@pytest.mark.parametrize("error_class", ErrorClass)
def test_an_error_of_every_class_arrives_as_it_was(error_class: ErrorClass) -> None:
    error = error_for(error_class, "What was wrong.", reason="SOME_REASON")
    back = there_and_back(error)
    assert type(back) is type(error)
    assert (str(back), back.reason) == ("What was wrong.", "SOME_REASON")
    assert rpc.status_of(error).code is GRPC_CODES[error_class]


def test_the_key_and_the_pause_travel_too() -> None:
    config = there_and_back(ConfigError("x", key="tasks.max"))
    throttled = there_and_back(ThrottledError("x", retry_after_ms=1500))
    assert isinstance(config, ConfigError)
    assert config.key == "tasks.max"
    assert isinstance(throttled, ThrottledError)
    assert throttled.retry_after_ms == 1500


def test_an_unknown_exception_is_a_bug_that_names_its_type() -> None:
    back = there_and_back(KeyError("colour"))
    assert isinstance(back, ConnectorBugError)
    assert "KeyError: 'colour'" in str(back)


def test_a_long_text_is_cut_to_what_headers_bear() -> None:
    back = there_and_back(TransientError("ü" * 5000))
    assert len(str(back).encode()) <= STATUS_MESSAGE_BYTES_MAX
    assert str(back).endswith("…")


@pytest.mark.parametrize(
    ("code", "error_class", "text"),
    [
        (grpc.StatusCode.UNAVAILABLE, ErrorClass.TRANSIENT, "Plan: it can't be reached (no such file)"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, ErrorClass.TRANSIENT, "Plan: it didn't answer in time"),
        (grpc.StatusCode.PERMISSION_DENIED, ErrorClass.AUTH, "Plan: no such file"),
        (grpc.StatusCode.UNIMPLEMENTED, ErrorClass.BUG, "Plan: no such file"),
    ],
)
def test_a_status_of_grpc_itself_is_classed_by_its_code(
    code: grpc.StatusCode, error_class: ErrorClass, text: str
) -> None:
    error = rpc.from_rpc_error(Failed(code, "no such file"), "Plan")
    assert (error.error_class, str(error)) == (error_class, text)


def test_damaged_details_leave_code_and_text() -> None:
    error = rpc.from_rpc_error(Failed(grpc.StatusCode.ABORTED, "Fenced.", ((rpc.DETAILS_KEY, b"\xff\xff"),)))
    assert isinstance(error, FencedError)


def attempts(errors: list[WherryError], deadline_s: float = 60.0) -> tuple[int, list[float], Any]:
    """How many attempts a call took that fails with each error in turn, the pauses, and how it ended."""
    pauses: list[float] = []
    count = 0
    try:
        for attempt in rpc.retrying(deadline_s, sleep=pauses.append):
            with attempt:
                count += 1
                if errors:
                    raise errors.pop(0)
    except WherryError as error:
        return count, pauses, error
    return count, pauses, None


def test_transient_errors_are_tried_again_until_it_works() -> None:
    count, pauses, error = attempts([TransientError("x"), TransientError("y")])
    assert (count, error) == (3, None)
    assert all(0 <= pause <= 2.0 for pause in pauses)


@pytest.mark.parametrize("error_class", sorted(set(ErrorClass) - {ErrorClass.TRANSIENT, ErrorClass.THROTTLED}))
def test_other_errors_are_raised_at_once(error_class: ErrorClass) -> None:
    error = error_for(error_class, "x")
    assert attempts([error]) == (1, [], error)


def test_a_throttled_call_waits_as_long_as_it_was_told() -> None:
    _, pauses, error = attempts([ThrottledError("x", retry_after_ms=700)])
    assert (pauses, error) == ([0.7], None)


def test_a_pause_beyond_the_deadline_is_not_begun() -> None:
    count, pauses, error = attempts([ThrottledError("x", retry_after_ms=90_000)])
    assert (count, pauses) == (1, [])
    assert isinstance(error, ThrottledError)


def test_attempts_are_bounded_and_the_last_error_is_raised_as_it_is() -> None:
    errors: list[WherryError] = [TransientError(str(n)) for n in range(100)]
    count, _, error = attempts(errors)
    assert count == 20
    assert str(error) == "19"


def test_grpc_is_told_how_to_poll_before_anybody_imports_it() -> None:
    program = "import os, sys, wherry.contract; print('grpc' in sys.modules, os.environ['GRPC_EXPERIMENTS'])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60.0)
    assert told.stdout.split() == ["False", "-event_engine_client,-event_engine_listener"]


class _SlowLine:
    """A TCP port in front of a server that passes on each direction's bytes only after a while."""

    def __init__(self, port: int, delay_s: float) -> None:
        self._target = ("127.0.0.1", port)
        self._delay_s = delay_s
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                far = socket.create_connection(self._target)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                time.sleep(self._delay_s)
                sink.sendall(data)


def test_a_connection_that_takes_its_time_is_waited_for_instead_of_begun_again_and_again() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    line = _SlowLine(port, delay_s=0.3)
    try:
        with rpc.channel(f"127.0.0.1:{line.port}") as channel:
            call = channel.unary_unary("/no.such.Service/Call")
            with pytest.raises(grpc.RpcError) as raised:
                call(b"", timeout=60.0)
        # It has reached the server, which has no such call.
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert line.connections == 1
    finally:
        line.close()
        server.stop(None)
