"""What workers of a cluster ask one another: signed, and never a client's affair.

A single worker has nobody to be asked by, so that it refuses: without signature as the real worker does, with one
because no key that could have made it was ever given out.
"""

from __future__ import annotations

from starlette.responses import Response

from wherry.coordinator.api import BadRequestError, ForbiddenError
from wherry.coordinator.rest.routing import Call, Route

SIGNATURE_HEADER = "X-Connect-Authorization"
ALGORITHM_HEADER = "X-Connect-Request-Signature-Algorithm"


def _refuse(call: Call) -> Response:
    if not (call.headers.get(SIGNATURE_HEADER) and call.headers.get(ALGORITHM_HEADER)):
        raise BadRequestError("Internal request missing required signature")
    raise ForbiddenError("Internal request contained invalid signature.")


ROUTES = (
    Route("POST", "/connectors/{connector}/tasks", _refuse, takes_body=True, internal=True),
    Route("PUT", "/connectors/{connector}/fence", _refuse, internal=True),
)
