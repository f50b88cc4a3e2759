"""The flows, by the name the command line knows them by."""

from __future__ import annotations

from tests.bench.flows import (
    create,
    file_kafka,
    gap,
    kafka_discard,
    kafka_postgres,
    latency,
    leader_kill,
    many,
    memory,
    startup,
)
from tests.bench.flows.flow import Flow

FLOWS: dict[str, Flow] = {
    flow.name: flow
    for flow in (
        kafka_postgres.FLOW,
        kafka_discard.FLOW,
        kafka_discard.DEV_NULL_FLOW,
        file_kafka.FLOW,
        latency.FLOW,
        startup.FLOW,
        memory.FLOW,
        many.FLOW,
        create.FLOW,
        gap.FLOW,
        leader_kill.FLOW,
    )
}
