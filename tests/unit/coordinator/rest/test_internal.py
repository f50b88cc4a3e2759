"""Requests between workers: what is unsigned, wrongly signed, signed in another way, or comes too early."""

from __future__ import annotations

import base64

import pytest

from wherry.coordinator.api import InternalVerifier
from wherry.coordinator.rest.internal import signature

KEY = b"k" * 32
BODY = b'[{"a":"1"}]'
TASKS, FENCE = ("POST", "/connectors/c/tasks"), ("PUT", "/connectors/c/fence")


def signed(text: str | None, algorithm: str | None = "HmacSHA256") -> dict[str, str | None]:
    return {"x_connect_authorization": text, "x_connect_request_signature_algorithm": algorithm}


def test_a_signature_is_that_of_the_standard():
    # RFC 4231, test case 2.
    found = signature(b"Jefe", b"what do ya want for nothing?", "HmacSHA256")
    assert base64.b64decode(found or "").hex() == ("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    assert signature(KEY, BODY, "Md5") is None


@pytest.mark.parametrize(("method", "path"), [TASKS, FENCE])
@pytest.mark.parametrize("headers", [signed(None), signed("YQ==", None), signed(None, None)])
def test_an_unsigned_request_is_refused(ask, herder, method, path, headers):
    herder.verifier = InternalVerifier(KEY, ("HmacSHA256",))
    answer = ask(method, path, BODY if method == "POST" else None, **headers)
    assert (answer.status, answer.message) == (400, "Internal request missing required signature")


@pytest.mark.parametrize(
    ("key", "text", "algorithm", "status", "message"),
    [
        (KEY, "YQ==", "HmacSHA256", 403, "Internal request contained invalid signature."),
        (KEY, signature(b"another", BODY, "HmacSHA256"), "HmacSHA256", 403, "invalid signature"),
        (KEY, signature(KEY, BODY + b" ", "HmacSHA256"), "HmacSHA256", 403, "invalid signature"),
        (KEY, "YQ==", "HmacSHA512", 400, "does not support the 'HmacSHA512' key signing algorithm"),
        (KEY, "no base64!", "HmacSHA256", 400, "is not base64"),
        (None, "YQ==", "HmacSHA256", 503, "session key"),
        (KEY, signature(KEY, BODY, "hmacsha256"), "hmacsha256", 409, "the leader's own affair"),
    ],
)
def test_a_signature_is_checked_with_the_session_key(ask, herder, key, text, algorithm, status, message):
    herder.verifier = InternalVerifier(key, ("HmacSHA256",))
    answer = ask(*TASKS, BODY, **signed(text, algorithm))
    assert answer.status == status
    assert message in answer.message


def test_a_worker_that_is_alone_takes_no_signature(ask):
    answer = ask(*TASKS, BODY, **signed(signature(KEY, BODY, "HmacSHA256")))
    assert (answer.status, answer.message) == (403, "Internal request contained invalid signature.")
