"""The flows, by the name the command line knows them by."""

from __future__ import annotations

from tests.bench.flows import (
    avro_discard,
    big_records,
    create,
    discard,
    exactly_once,
    executor_kill,
    file_kafka,
    gap,
    kafka_kafka,
    kafka_postgres,
    latency,
    leader_kill,
    many,
    memory,
    scaling,
    startup,
)
from tests.bench.flows.flow import Flow

_DATA_PLANE = (
    discard.PLAIN,
    discard.TRANSFORMED,
    discard.ENVELOPED,
    discard.TEXTS,
    file_kafka.FLOW,
    kafka_kafka.FLOW,
    avro_discard.FLOW,
    exactly_once.FLOW,
    scaling.FLOW,
    scaling.ROWS_FLOW,
    big_records.FLOW,
)
FLOWS: dict[str, Flow] = {
    flow.name: flow
    for flow in (
        kafka_postgres.FLOW,
        *_DATA_PLANE,
        discard.DEV_NULL_FLOW,
        latency.FLOW,
        startup.FLOW,
        memory.FLOW,
        many.FLOW,
        create.FLOW,
        gap.FLOW,
        leader_kill.FLOW,
        executor_kill.FLOW,
    )
}
GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(FLOWS),
    "data-plane": tuple(flow.name for flow in _DATA_PLANE),
}
"""Several flows under one name: all of them, or those of the data plane's table of targets."""
