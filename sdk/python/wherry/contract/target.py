"""Where a sink writes: kept apart so that a sidecar needn't load the engine's client."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Target:
    """Where a sink writes the rows of a topic.

    Attributes:
        target: Name, such as a quoted table name.
        actions: Steps taken or needed, one sentence each.
        schema: Schema that the engine should give the values; None means any.
    """

    target: str
    actions: tuple[str, ...] = ()
    schema: pa.Schema | None = None
