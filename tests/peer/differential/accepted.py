"""The differences that are accepted, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.peer.differential.report import Difference


@dataclass(frozen=True, slots=True)
class Accepted:
    """A difference that is wanted, or that cannot be helped.

    Attributes:
        reason: Why.
        covers: Tells whether a difference is this one.
    """

    reason: str
    covers: Callable[[Difference], bool]


ACCEPTED: tuple[Accepted, ...] = ()


def reason_for(difference: Difference) -> str | None:
    """Returns why a difference is accepted; None when it is not."""
    return next((each.reason for each in ACCEPTED if each.covers(difference)), None)
