"""The flows, by the name the command line knows them by."""

from __future__ import annotations

from tests.bench.flows import kafka_postgres
from tests.bench.flows.flow import Flow

FLOWS: dict[str, Flow] = {flow.name: flow for flow in (kafka_postgres.FLOW,)}
