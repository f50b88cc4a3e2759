"""Who leads: one coordinator's view of its Kafka consumer group, as a small machine.

All coordinators of a `group.id` subscribe to the config topic, which has one partition; whoever is given it leads, once
it has fenced its forerunner and read what that one wrote. Decides the next phase and what is to be done; sees no Kafka,
no clock and no threads. A coordinator that has been out of touch (a frozen process, a network cut) asks before it goes
on, for another one may lead by then.

    OUTSIDE ─joined─► STANDBY ─given─► CLAIMING ─claimed─► LEADING ─silent─► DOUBTING ─confirmed─► LEADING
                         ▲                ▲ └──────lost──────┴──────┬──────────┘
                         │                └─confirmed─ RETURNING ◄──┘
                         └─────── taken, joined, fenced, refuted, from any of these

When Kafka has been away for the session's time, its client joins the group as a new member, and the group waits for
the place of the old one to run out before it decides anew. Until then nobody else can lead: whoever finds its old place
still there leads on from it at once, and on that ground alone only while it is told so again and again (`due`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final


class Phase(enum.Enum):
    """Where a coordinator stands in its group."""

    OUTSIDE = "outside"
    STANDBY = "standby"
    CLAIMING = "claiming"
    LEADING = "leading"
    DOUBTING = "doubting"
    RETURNING = "returning"
    LEFT = "left"


class Input(enum.Enum):
    """What can happen."""

    JOINED = "joined"
    """The group has decided, and the partition is not ours."""
    GIVEN = "given"
    """The partition is ours."""
    TAKEN = "taken"
    """The partition has gone to another one, or will."""
    LOST = "lost"
    """The group was out of reach for so long that our place in it may be another one's by now."""
    CLAIMED = "claimed"
    """Our forerunner is fenced, and all it wrote is read."""
    CLAIM_FAILED = "claim failed"
    LEAD_FAILED = "lead failed"
    """Kafka did not answer while the connectors were taken up."""
    FENCED = "fenced"
    """A write was refused, for another one leads."""
    SILENT = "silent"
    """For too long we have not been running, or have not been in touch."""
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    LEAVE = "leave"


class Effect(enum.Enum):
    """What is to be done."""

    CLAIM = "claim"
    """Fence the forerunner and read the topics; answered by CLAIMED or CLAIM_FAILED."""
    LEAD = "lead"
    """Take up all connectors; answered by LEAD_FAILED when that is to be tried again."""
    DEPOSE = "depose"
    """Drop all work at once, without committing anything."""
    ASK = "ask"
    """Ask the group who has the partition; answered by CONFIRMED or REFUTED."""
    REJOIN = "rejoin"
    """Leave the group and join it anew."""
    LEAVE = "leave"


_P, _I, _E = Phase, Input, Effect
TRANSITIONS: Final[Mapping[tuple[Phase, Input], tuple[Phase, tuple[Effect, ...]]]] = {
    (_P.OUTSIDE, _I.JOINED): (_P.STANDBY, ()),
    (_P.OUTSIDE, _I.GIVEN): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.STANDBY, _I.GIVEN): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.CLAIMING, _I.CLAIMED): (_P.LEADING, (_E.LEAD,)),
    (_P.CLAIMING, _I.CLAIM_FAILED): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.CLAIMING, _I.TAKEN): (_P.STANDBY, ()),
    (_P.CLAIMING, _I.JOINED): (_P.STANDBY, ()),
    (_P.CLAIMING, _I.LOST): (_P.RETURNING, (_E.ASK,)),
    (_P.CLAIMING, _I.SILENT): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.LEADING, _I.LEAD_FAILED): (_P.CLAIMING, (_E.DEPOSE, _E.CLAIM)),
    (_P.LEADING, _I.TAKEN): (_P.STANDBY, (_E.DEPOSE,)),
    (_P.LEADING, _I.JOINED): (_P.STANDBY, (_E.DEPOSE,)),
    (_P.LEADING, _I.LOST): (_P.RETURNING, (_E.DEPOSE, _E.ASK)),
    (_P.LEADING, _I.FENCED): (_P.OUTSIDE, (_E.DEPOSE, _E.REJOIN)),
    (_P.LEADING, _I.SILENT): (_P.DOUBTING, (_E.ASK,)),
    (_P.DOUBTING, _I.LEAD_FAILED): (_P.CLAIMING, (_E.DEPOSE, _E.CLAIM)),
    (_P.DOUBTING, _I.CONFIRMED): (_P.LEADING, ()),
    (_P.DOUBTING, _I.REFUTED): (_P.OUTSIDE, (_E.DEPOSE, _E.REJOIN)),
    (_P.DOUBTING, _I.FENCED): (_P.OUTSIDE, (_E.DEPOSE, _E.REJOIN)),
    (_P.DOUBTING, _I.TAKEN): (_P.STANDBY, (_E.DEPOSE,)),
    (_P.DOUBTING, _I.JOINED): (_P.STANDBY, (_E.DEPOSE,)),
    (_P.DOUBTING, _I.LOST): (_P.RETURNING, (_E.DEPOSE, _E.ASK)),
    (_P.RETURNING, _I.CONFIRMED): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.RETURNING, _I.GIVEN): (_P.CLAIMING, (_E.CLAIM,)),
    (_P.RETURNING, _I.REFUTED): (_P.STANDBY, ()),
    (_P.RETURNING, _I.JOINED): (_P.STANDBY, ()),
    (_P.RETURNING, _I.TAKEN): (_P.STANDBY, ()),
    **{(phase, _I.LEAVE): (_P.LEFT, (_E.LEAVE,)) for phase in _P if phase is not _P.LEFT},
}
"""Everything else changes nothing."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A coordinator in its group.

    Attributes:
        claim: Number of the claim under way or made, or of the return; answers to older ones count no more.
    """

    phase: Phase = Phase.OUTSIDE
    claim: int = 0

    @property
    def may_write(self) -> bool:
        """Whether what is written now is written by the leader."""
        return self.phase is Phase.LEADING


def step(membership: Membership, given: Input, *, claim: int | None = None) -> tuple[Membership, tuple[Effect, ...]]:
    """The membership afterwards, and what is to be done in this order.

    Args:
        membership: As it is.
        given: What happened.
        claim: For CLAIMED, CLAIM_FAILED, LEAD_FAILED, CONFIRMED and REFUTED: the claim it is the answer to.
    """
    if claim is not None and claim != membership.claim:
        return membership, ()
    found = TRANSITIONS.get((membership.phase, given))
    if found is None:
        return membership, ()
    phase, effects = found
    number = membership.claim + (Effect.CLAIM in effects or phase is Phase.RETURNING)
    return replace(membership, phase=phase, claim=number), effects


HELD_MS: Final = 500
"""How long the old place in the group is believed in after it was seen; to take it and to lead takes another longer."""


def due(membership: Membership, *, now_ms: int, beat_ms: int, held_ms: int | None, session_ms: int) -> Input | None:
    """What time alone brings about.

    Args:
        membership: As it is.
        now_ms: The time.
        beat_ms: When this process last looked.
        held_ms: When our old place was last known to be there; None when the group has told us of the place we have.
        session_ms: How long a member may be silent before it is none any more.
    """
    if now_ms - beat_ms > session_ms / 2:
        return Input.SILENT
    if held_ms is None:
        return None
    if membership.phase is Phase.LEADING and now_ms - held_ms > HELD_MS:
        return Input.SILENT
    if membership.phase is Phase.DOUBTING and now_ms - held_ms > session_ms / 2:
        return Input.LOST
    return None
