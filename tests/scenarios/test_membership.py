"""Runs `leadership/membership.txt`: an input, then the phase and the effects; and looks at all transitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.coordinator.membership import HELD_MS, TRANSITIONS, Effect, Input, Membership, Phase, due, step

SCENARIO = Path(__file__).parent / "leadership/membership.txt"

ANSWERS = (Input.CLAIMED, Input.CLAIM_FAILED, Input.LEAD_FAILED, Input.CONFIRMED, Input.REFUTED)


def blocks() -> Iterator[tuple[int, str, str]]:
    """Line number, command and what follows of every block."""
    lines = [(n, text) for n, text in enumerate(SCENARIO.read_text().splitlines(), 1) if not text.startswith("#")]
    told = [(n, text) for n, text in lines if text]
    for (number, command), (_, rule), (_, answer) in zip(told[::3], told[1::3], told[2::3], strict=True):
        assert rule == "----", f"line {number}"
        yield number, command, answer


def test_the_scenario_is_what_happens():
    membership = Membership()
    for number, command, answer in blocks():
        verb, *options = command.split()
        claim = int(options[0].removeprefix("claim=")) if options else None
        membership, effects = step(membership, Input(verb.replace("-", " ")), claim=claim)
        told = f": {', '.join(effect.value for effect in effects)}" if effects else ""
        assert f"{membership.phase.value}{told}" == answer, f"line {number}: {command}"


def test_whoever_stops_leading_drops_the_work_unless_it_leaves_in_good_order():
    leads = (Phase.LEADING, Phase.DOUBTING)
    for (before, given), (after, effects) in TRANSITIONS.items():
        deposed = before in leads and after not in leads and given is not Input.LEAVE
        assert (Effect.DEPOSE in effects) is deposed, (before, given)


def test_leading_is_entered_by_a_claim_or_by_asking_only():
    entries = {(before, given) for (before, given), (after, _) in TRANSITIONS.items() if after is Phase.LEADING}
    assert entries == {(Phase.CLAIMING, Input.CLAIMED), (Phase.DOUBTING, Input.CONFIRMED)}


def test_whatever_comes_lost_late_twice_or_in_any_order_nobody_writes_on_doubtful_grounds():
    """Between the last sign that another one may lead and the next write lies a claim or an answer of the group."""
    doubts = (Input.TAKEN, Input.JOINED, Input.LOST, Input.FENCED, Input.SILENT)
    wrote = 0
    for seed in range(100):
        chance = random.Random(seed)
        membership, sure = Membership(), False
        for _ in range(80):
            given = chance.choice([i for i in Input if i is not Input.LEAVE])
            answers = given in ANSWERS
            claim = membership.claim - chance.choice([0, 0, 0, 1]) if answers else None
            if given in doubts:
                sure = False
            elif given in (Input.CLAIMED, Input.CONFIRMED) and claim == membership.claim:
                sure = True
            membership, _ = step(membership, given, claim=claim)
            assert sure or not membership.may_write
            wrote += membership.may_write
        membership, _ = step(membership, Input.LEAVE)
        for given in Input:
            membership, effects = step(membership, given)
            assert (membership.phase, effects) == (Phase.LEFT, ())
    assert wrote


@pytest.mark.parametrize(
    ("phase", "beat_ms", "held_ms", "wanted"),
    [
        (Phase.LEADING, 9_900, None, None),
        (Phase.LEADING, 7_001, None, None),
        (Phase.LEADING, 6_999, None, Input.SILENT),
        (Phase.LEADING, 9_900, 10_000 - HELD_MS, None),
        (Phase.LEADING, 9_900, 9_999 - HELD_MS, Input.SILENT),
        (Phase.DOUBTING, 9_900, 7_001, None),
        (Phase.DOUBTING, 9_900, 6_999, Input.LOST),
        (Phase.DOUBTING, 9_900, None, None),
        *((phase, 9_900, 0, None) for phase in (Phase.CLAIMING, Phase.RETURNING, Phase.STANDBY)),
    ],
)
def test_time_alone_brings_doubts_and_makes_an_old_place_be_given_up(phase, beat_ms, held_ms, wanted):
    found = due(Membership(phase), now_ms=10_000, beat_ms=beat_ms, held_ms=held_ms, session_ms=6_000)
    assert found is wanted
