"""A guarantee that a pair can't give is refused when it is asked for."""

from __future__ import annotations

import pytest

from wherry.contract.description import Role, SinkClass
from wherry.coordinator.config.delivery import DELIVERY, GIVEN, GUARANTEES, problems


@pytest.mark.parametrize("asked", GUARANTEES)
@pytest.mark.parametrize("kind", list(SinkClass))
def test_a_sink_gives_what_its_class_gives_and_everything_worth_less(kind: SinkClass, asked: str) -> None:
    allowed = {
        SinkClass.APPEND: {"at-least-once"},
        SinkClass.IDEMPOTENT: {"at-least-once", "effectively-once"},
        SinkClass.TWO_PHASE: set(GUARANTEES),
        SinkClass.TRANSACTIONAL: set(GUARANTEES),
    }[kind]
    assert (problems({DELIVERY: asked}, Role.SINK, kind) == {}) == (asked in allowed)


def test_every_class_of_sinks_has_its_guarantee() -> None:
    assert set(GIVEN) == set(SinkClass)


def test_the_refusal_says_what_is_given() -> None:
    assert problems({DELIVERY: "exactly-once"}, Role.SINK, None) == {
        DELIVERY: [
            "wherry.delivery=exactly-once is more than this connector can give: with this configuration it is of the "
            "class append, which gives at-least-once."
        ]
    }


def test_a_source_is_told_its_own_key() -> None:
    assert problems({DELIVERY: "at-least-once"}, Role.SOURCE, None) == {}
    (found,) = problems({DELIVERY: "exactly-once"}, Role.SOURCE, None).values()
    assert "exactly.once.support=required" in found[0]


def test_nothing_asked_is_nothing_refused_and_nonsense_is_told() -> None:
    assert problems({}, Role.SINK, SinkClass.APPEND) == {}
    (found,) = problems({DELIVERY: "twice"}, Role.SINK, SinkClass.APPEND).values()
    assert found[0].endswith("String must be one of: at-least-once, effectively-once, exactly-once")
