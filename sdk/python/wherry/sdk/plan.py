"""What authors say about the work there is, and what they know about where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from wherry.contract import plan as contract
from wherry.contract.errors import ConnectorBugError
from wherry.contract.limits import DESCRIPTOR_BYTES_MAX
from wherry.contract.position import Position, compact_json

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """Unbounded work: a log to follow.

    Attributes:
        data: Whatever `read` needs to know, as JSON; it comes back as `work.data`.
        config: Configuration of the task as REST shows it, without secrets.
        partitions: Partitions whose offsets `read` wants; empty means all of the connector.
    """

    data: Any = None
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: Sequence[Json] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """Bounded work: it ends when `read` returns.

    Attributes:
        id: Stable for the same work, unique within the connector: a file's path, a key range.
        data: Whatever `read` needs to know, as JSON.
        order_group: Splits of one group run one after another in plan order; empty means on their own.
        partitions: Partitions whose offsets `read` wants; empty means all of the connector.
        rows_estimate: Rows expected; 0 if unknown.
        bytes_estimate: Bytes expected; 0 if unknown.
    """

    id: str
    data: Any = None
    order_group: str = ""
    partitions: Sequence[Json] = ()
    rows_estimate: int = 0
    bytes_estimate: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The work there is.

    Attributes:
        tasks: Unbounded work, at most as many as asked for.
        splits: Bounded work that is not done yet; splits under way are left out by the SDK.
        replan_after_ms: Ask again after so many ms; 0 means only when told to (`context.plan_changed`).
        retired: Partitions that need no offset any more.
        reached: Positions reached without reading, as pairs of partition and offset; stored when no split is active.
        complete: There will never be more work: the connector is done when its splits are.
    """

    tasks: Sequence[Task] = ()
    splits: Sequence[Split] = ()
    replan_after_ms: int = 0
    retired: Sequence[Json] = ()
    reached: Sequence[tuple[Json, Json]] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What `read` is to read.

    Attributes:
        id: Id of the split; of a task its place, from "0".
        data: What the task or split was planned with.
        split: Whether it is a split.
        task: Number of the task, or of the lease that reads the split.
        frame_bytes_target: Bytes a batch should have under load; of use to batch-wise sources.
    """

    id: str
    data: Any = None
    split: bool = False
    task: int = 0
    frame_bytes_target: int = 0


class Offsets:
    """Stored offsets by partition. Iterating yields pairs of partition and offset."""

    def __init__(
        self, positions: Iterable[Position] = (), query: Callable[[str], Position | None] | None = None
    ) -> None:
        self._offsets = {position.partition: position for position in positions if position.offset is not None}
        self._query = query

    def get(self, partition: Json) -> dict[str, Any] | None:
        """Returns the offset of a partition; None when there is none.

        A partition that the work's `partitions` left out is asked for.
        """
        text = compact_json(partition)
        position = self._offsets.get(text)
        if position is None and self._query is not None:
            position = self._query(text)
        if position is None:
            # An operator may have written the same partition with its keys in another order.
            wanted = dict(partition)
            position = next((known for known in self._offsets.values() if known.partition_map == wanted), None)
        return None if position is None else position.offset_map

    def __iter__(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for position in self._offsets.values():
            yield position.partition_map, position.offset_map or {}

    def __len__(self) -> int:
        return len(self._offsets)


def to_contract(plan: Plan, tasks_max: int, active: Sequence[str], splits_max: int) -> contract.Plan:
    """Makes the contract's plan of the author's.

    Raises:
        ConnectorBugError: There are more tasks than asked for, a split's id repeats, or data is too large.
    """
    if len(plan.tasks) > tasks_max:
        raise ConnectorBugError(f"The plan has {len(plan.tasks)} tasks; at most {tasks_max} were asked for.")
    ids = [split.id for split in plan.splits]
    if len(set(ids)) != len(ids):
        raise ConnectorBugError(f"The plan has two splits {next(i for i in ids if ids.count(i) > 1)!r}.")
    busy = set(active)
    waiting = [split for split in plan.splits if split.id not in busy]
    offered = waiting[:splits_max] if splits_max else waiting
    return contract.Plan(
        tasks=tuple(
            contract.Work(str(place), _packed(task.data), dict(task.config), "", _texts(task.partitions))
            for place, task in enumerate(plan.tasks)
        ),
        splits=tuple(
            contract.Work(
                split.id,
                _packed(split.data),
                {},
                split.order_group,
                _texts(split.partitions),
                split.rows_estimate,
                split.bytes_estimate,
            )
            for split in offered
        ),
        replan_after_ms=plan.replan_after_ms,
        retired=tuple(Position(compact_json(partition), None) for partition in plan.retired),
        reached=tuple(Position.of(partition, offset) for partition, offset in plan.reached),
        # Splits held back for a later plan are more work.
        complete=plan.complete and len(offered) == len(waiting),
    )


def to_author(work: contract.Work, *, split: bool, task: int, frame_bytes_target: int) -> Work:
    """Makes the author's view of the contract's work."""
    data = json.loads(work.descriptor) if work.descriptor else None
    return Work(work.id, data, split, task, frame_bytes_target)


def _packed(data: Any) -> bytes:
    if data is None:
        return b""
    try:
        packed = orjson.dumps(data)
    except TypeError as error:
        raise ConnectorBugError(f"The data of a task or split must be JSON: {error}.") from error
    if len(packed) > DESCRIPTOR_BYTES_MAX:
        raise ConnectorBugError(f"The data of a task or split takes {len(packed)} bytes; 65536 are allowed.")
    return packed


def _texts(partitions: Sequence[Json]) -> tuple[str, ...]:
    return tuple(compact_json(partition) for partition in partitions)
