"""Errors as Kafka Connect's REST API shows them: a status and `{"error_code", "message"}`.

Errors that come up before a method was matched (no such path, wrong method, wrong media type) carry no Content-Type,
as the real worker's do.
"""

from __future__ import annotations

import http
import logging

from starlette.responses import Response

from wherry.contract.errors import ErrorClass, WherryError
from wherry.coordinator.api import ApiError
from wherry.coordinator.rest.bodies import dumps

_log = logging.getLogger(__name__)

# An error of the contract that reaches a request: whoever asked can mend the first, the others are the worker's.
_STATUS_BY_CLASS: dict[ErrorClass, int] = {
    ErrorClass.CONFIG: 400,
    ErrorClass.AUTH: 500,
    ErrorClass.TRANSIENT: 500,
    ErrorClass.THROTTLED: 500,
    ErrorClass.OFFSET_LOST: 500,
    ErrorClass.SCHEMA: 500,
    ErrorClass.FENCED: 409,
    ErrorClass.BUG: 500,
}


class UnmatchedError(ApiError):
    """The request fits no method of any resource.

    Attributes:
        typed: Whether the answer names its media type; the real worker does once a method was matched.
    """

    typed = False

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status} {http.HTTPStatus(status).phrase}", status=status)


def error_response(error: BaseException, *, request: str) -> Response:
    """The answer to a request that raised."""
    if isinstance(error, ApiError):
        status, message = error.status, error.message
    elif isinstance(error, WherryError):
        status, message = _STATUS_BY_CLASS[error.error_class], error.message
    else:
        _log.error("%s failed", request, exc_info=error)
        status, message = 500, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    media_type = None if isinstance(error, UnmatchedError) and not error.typed else "application/json"
    return Response(dumps({"error_code": status, "message": message}), status_code=status, media_type=media_type)
