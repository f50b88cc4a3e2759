"""What a source has to do: unbounded tasks and bounded splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wherry.contract.position import Position


@dataclass(frozen=True, slots=True)
class Work:
    """A task or a split.

    Attributes:
        id: For a split: stable for the same work, unique within the connector. For a task: its place, from "0".
        descriptor: Whatever Read needs to know, at most 64 KiB; opaque to the engine.
        config: Configuration of a task as REST shows it, without secrets; splits leave it empty.
        order_group: Splits in one group run one after another in plan order; empty means on their own.
        partitions: Partitions (compact JSON) whose positions Read wants; empty means all of the connector.
        rows_estimate: Rows expected; 0 if unknown.
        bytes_estimate: Bytes expected; 0 if unknown.
    """

    id: str
    descriptor: bytes = b""
    config: Mapping[str, str] = field(default_factory=dict)
    order_group: str = ""
    partitions: tuple[str, ...] = ()
    rows_estimate: int = 0
    bytes_estimate: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The work there is.

    Attributes:
        tasks: Unbounded work: logs to follow; at most tasks.max.
        splits: Bounded work.
        replan_after_ms: Ask again after so many ms; 0 means only when told to.
        retired: Partitions that need no position any more.
        reached: Positions reached without reading; stored when no split is active.
        complete: There will never be more work: the connector is done when its splits are.
    """

    tasks: tuple[Work, ...] = ()
    splits: tuple[Work, ...] = ()
    replan_after_ms: int = 0
    retired: tuple[Position, ...] = ()
    reached: tuple[Position, ...] = ()
    complete: bool = False
