"""A lease that needs no sidecar: speaks the whole LeaseService protocol and counts instead of moving records.

Runs inside Spark's Python worker in place of `wherry.worker.lease`. Every step it reports the next position of its
partition; a split has as many steps as its descriptor says. Its process id goes along as the worker's identity.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from wherry.connector.v1 import common_pb2
from wherry.control.v1 import lease_pb2, lease_pb2_grpc

STEP_S = 0.02


def run(spec_bytes: bytes) -> dict[str, Any]:
    spec = lease_pb2.LeaseSpec.FromString(spec_bytes)
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = context.attemptNumber() if context else 0
    try:
        with grpc.insecure_channel(spec.coordinator_endpoints[0]) as channel:
            return _Lease(spec, attempt, lease_pb2_grpc.LeaseServiceStub(channel)).run()
    except grpc.RpcError as error:
        fenced = error.code() is grpc.StatusCode.ABORTED
        return {"reason": 5 if fenced else 4, "error_class": 7 if fenced else 1, "message": error.details()}


class _Lease:
    def __init__(self, spec: lease_pb2.LeaseSpec, attempt: int, stub: Any) -> None:
        self.spec, self.attempt, self.stub = spec, attempt, stub
        self.out: queue.Queue[lease_pb2.ProgressRequest | None] = queue.Queue()
        self.committed = 0
        self.drained = self.fenced = False
        self.assigned: queue.Queue[lease_pb2.AssignWork] = queue.Queue()
        self.seq = 0

    def run(self) -> dict[str, Any]:
        grant = self.stub.OpenLease(
            lease_pb2.OpenLeaseRequest(
                lease_id=self.spec.lease_id,
                generation=self.spec.generation,
                attempt=self.attempt,
                token=self.spec.token,
                worker=lease_pb2.WorkerIdentity(host="here", pid=os.getpid()),
            ),
            timeout=60,
        )
        self.out.put(
            lease_pb2.ProgressRequest(
                open=lease_pb2.ProgressOpen(
                    lease_id=self.spec.lease_id,
                    generation=self.spec.generation,
                    attempt=self.attempt,
                    token=self.spec.token,
                )
            )
        )
        reader = threading.Thread(target=self._listen, args=(self.stub.Progress(iter(self._requests())),), daemon=True)
        reader.start()
        reason = self._splits(grant) if grant.split else self._follow(grant)
        self.out.put(lease_pb2.ProgressRequest(ended=lease_pb2.LeaseEnded(reason=reason)))
        self.out.put(None)
        reader.join(3)
        return {"reason": reason}

    def _follow(self, grant: lease_pb2.OpenLeaseResponse) -> int:
        """A log without end; `idle_after` in the descriptor makes it go idle, `fail` makes it fail."""
        wanted = json.loads(grant.work.descriptor or b"{}")
        partition = grant.work.partitions_json[0] if grant.work.partitions_json else grant.partitions_json[0]
        n = _number(grant.positions, partition)
        steps = 0
        while not self.drained and not self.fenced:
            n, steps = n + 1, steps + 1
            self._report(positions=[_position(partition, n)])
            time.sleep(STEP_S)
            if steps >= wanted.get("idle_after", 1 << 60):
                return int(lease_pb2.END_REASON_IDLE)
        return int(lease_pb2.END_REASON_FENCED if self.fenced else lease_pb2.END_REASON_DRAINED)

    def _splits(self, grant: lease_pb2.OpenLeaseResponse) -> int:
        work = grant.work
        while not self.drained and not self.fenced:
            partition = work.partitions_json[0]
            for n in range(json.loads(work.descriptor)["steps"]):
                self._report(positions=[_position(partition, n + 1)])
                time.sleep(STEP_S)
            self._report(splits_done=[work.id], want_split=True)
            assign = self.assigned.get(timeout=5)
            if not assign.HasField("work"):
                return int(lease_pb2.END_REASON_SPLITS_DONE)
            work = assign.work
        return int(lease_pb2.END_REASON_FENCED if self.fenced else lease_pb2.END_REASON_DRAINED)

    def _report(self, **fields: Any) -> None:
        self.seq += 1
        self.out.put(lease_pb2.ProgressRequest(report=lease_pb2.LeaseReport(seq=self.seq, **fields)))

    def _requests(self) -> Iterator[lease_pb2.ProgressRequest]:
        while (request := self.out.get()) is not None:
            yield request

    def _listen(self, responses: Any) -> None:
        try:
            for response in responses:
                match response.WhichOneof("message"):
                    case "committed":
                        self.committed = response.committed.seq
                    case "drain":
                        self.drained = True
                    case "fence":
                        self.fenced = True
                    case "assign":
                        self.assigned.put(response.assign)
        except grpc.RpcError:
            self.fenced = True


def _position(partition: str, n: int) -> common_pb2.Position:
    return common_pb2.Position(partition_json=partition, offset_json=json.dumps({"n": n}, separators=(",", ":")))


def _number(positions: Any, partition: str) -> int:
    for position in positions:
        if position.partition_json == partition and position.HasField("offset_json"):
            return int(json.loads(position.offset_json)["n"])
    return 0
