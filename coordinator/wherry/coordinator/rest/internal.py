"""What workers of a cluster ask one another: signed, and never a client's affair.

A signature is checked with the key that the leader has written to the config topic. A single worker has no such key and
nobody to be asked by. What is rightly signed is refused too, with a reason: here the leader alone plans and fences, so
that no worker of ours asks for it, and those of Kafka Connect cannot be in a group with us.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from wherry.coordinator.api import BadRequestError, ConflictError, ForbiddenError, UnavailableError
from wherry.coordinator.rest.routing import Call, Route

SIGNATURE_HEADER = "X-Connect-Authorization"
ALGORITHM_HEADER = "X-Connect-Request-Signature-Algorithm"
_DIGESTS: Final[Mapping[str, str]] = {
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
}


def signature(key: bytes, body: bytes, algorithm: str) -> str | None:
    """What a worker with this key signs a body with; None for an algorithm nobody has."""
    digest = _DIGESTS.get(algorithm.lower())
    if digest is None or not hasattr(hashlib, digest):
        return None
    return base64.b64encode(hmac.new(key, body, digest).digest()).decode()


def _refuse(call: Call) -> Response:
    given, algorithm = call.headers.get(SIGNATURE_HEADER), call.headers.get(ALGORITHM_HEADER)
    if not (given and algorithm):
        raise BadRequestError("Internal request missing required signature")
    verifier = call.herder.internal_verifier()
    if verifier is None:
        raise ForbiddenError("Internal request contained invalid signature.")
    if algorithm.lower() not in {name.lower() for name in verifier.algorithms}:
        raise BadRequestError(
            f"This worker does not support the '{algorithm}' key signing algorithm used by other workers; it supports "
            f"{', '.join(verifier.algorithms)}."
        )
    try:
        base64.b64decode(given, validate=True)
    except binascii.Error as error:
        raise BadRequestError(f"The signature of an internal request is not base64 ({error}).") from error
    if verifier.key is None:
        raise UnavailableError("This worker is still starting up and has not been able to read a session key yet.")
    expected = signature(verifier.key, call.body, algorithm)
    if expected is None or not hmac.compare_digest(expected.encode(), given.encode("latin-1", "replace")):
        raise ForbiddenError("Internal request contained invalid signature.")
    raise ConflictError(
        "Task configurations and fencing are the leader's own affair in Wherry; nothing was changed by this request."
    )


ROUTES = (
    Route("POST", "/connectors/{connector}/tasks", _refuse, takes_body=True, internal=True),
    Route("PUT", "/connectors/{connector}/fence", _refuse, internal=True),
)
