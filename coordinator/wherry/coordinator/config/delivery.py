"""What a connector asks for with `wherry.delivery`, and whether its pair of source and sink can give it.

A sink reads Kafka, which can be read again, so that its own class decides: a transactional or two-phase sink gives
exactly-once, an idempotent one the same result per key however often rows come, an appending one at least once.
A configuration that asks for more is refused when it is written, not found out about after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wherry.contract.config import ConfigKey, OneOfValidator, invalid
from wherry.contract.description import Role, SinkClass

DELIVERY: Final = "wherry.delivery"
GUARANTEES: Final = ("at-least-once", "effectively-once", "exactly-once")
"""Each is worth more than those before it."""
KEY: Final = ConfigKey(
    DELIVERY,
    documentation="Guarantee that the connector must be able to give; refused when its class gives less.",
    validators=(OneOfValidator(GUARANTEES),),
)
GIVEN: Final[Mapping[SinkClass, str]] = {
    SinkClass.APPEND: "at-least-once",
    SinkClass.IDEMPOTENT: "effectively-once",
    SinkClass.TWO_PHASE: "exactly-once",
    SinkClass.TRANSACTIONAL: "exactly-once",
}


def problems(config: Mapping[str, str], role: Role, sink_class: SinkClass | None) -> dict[str, list[str]]:
    """What is wrong with the guarantee asked for, by key; nothing when none is asked for.

    Args:
        config: The connector's, with placeholders filled in.
        role: Source or sink.
        sink_class: A sink's class under this configuration; None is taken as APPEND.
    """
    asked = config.get(DELIVERY)
    if asked is None:
        return {}
    if asked not in GUARANTEES:
        return {DELIVERY: [invalid(DELIVERY, asked, f"String must be one of: {', '.join(GUARANTEES)}")]}
    if role is Role.SOURCE:
        if asked == GUARANTEES[0]:
            return {}
        return {DELIVERY: [f"{DELIVERY} is for sinks; a source asks for {asked} with exactly.once.support=required."]}
    kind = sink_class or SinkClass.APPEND
    given = GIVEN[kind]
    if GUARANTEES.index(asked) <= GUARANTEES.index(given):
        return {}
    name = kind.name.lower().replace("_", "-")
    return {
        DELIVERY: [
            f"{DELIVERY}={asked} is more than this connector can give: with this configuration it is of the class "
            f"{name}, which gives {given}."
        ]
    }
