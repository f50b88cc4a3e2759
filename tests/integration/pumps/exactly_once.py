"""A lease of an exactly-once source or mirror in a process of its own, to be killed: pumps until it has caught up.

Told nothing of positions, so that it goes on from what the offsets topic holds. Says `ready` when it begins to move
records, and at last how it ended.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from wherry.contract import to_proto
from wherry.contract.description import Role
from wherry.contract.errors import WherryError
from wherry.contract.plan import Work
from wherry.control.v1 import lease_pb2
from wherry.worker import pump
from wherry.worker.pipeline import build
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import Signals

STRING = "org.apache.kafka.connect.storage.StringConverter"


class Coordinator:
    """Takes every report and keeps none."""

    def __init__(self) -> None:
        self._seq = 0

    def report(self, **_: Any) -> int:
        self._seq += 1
        return self._seq

    def committed_seq(self) -> int:
        return self._seq


def grant_of(wanted: dict[str, Any]) -> lease_pb2.OpenLeaseResponse:
    worker = {
        "bootstrap.servers": wanted["bootstrap"],
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.storage.partitions": "3",
        "offset.storage.replication.factor": "1",
    }
    grant = lease_pb2.OpenLeaseResponse(
        kind=lease_pb2.PIPELINE_KIND_SOURCE,
        config={"name": "c", **wanted.get("config", {})},
        worker_config=worker,
        exactly_once=lease_pb2.ExactlyOnce(
            transactional_id=wanted["id"],
            offsets_topic=wanted["offsets"],
            boundary=wanted["boundary"],
            interval_ms=wanted.get("interval_ms", 300),
        ),
    )
    if "mirrored" in wanted:
        grant.kind = lease_pb2.PIPELINE_KIND_MIRROR
        grant.work.CopyFrom(to_proto.work(Work("0", partitions=tuple(wanted["mirrored"]))))
        return grant
    grant.sidecars.add(role=int(Role.SOURCE), connector="c", class_name="test.Counting", generation=1)  # type: ignore[arg-type]
    grant.work.id = "0"
    return grant


def main(wanted: dict[str, Any]) -> None:
    try:
        pipeline = build(grant_of(wanted), {Role.SOURCE: wanted.get("endpoint", "")})
        print("ready", flush=True)
        with contextlib.closing(pipeline):
            end = pump.run(pipeline, LeasePolicy(idle_park_s=0.3), Signals(), Coordinator())
            print(end.name, flush=True)
    except WherryError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
