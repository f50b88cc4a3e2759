"""Transforms between reader and writer: their Protocol, and the chain that applies them in order.

A transform answers with a batch of fewer, equal or more rows, and keeps the marks true: a mark stands after the rows
that the rows before it became. A filtered row moves the position all the same.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from wherry.contract.batch import Batch


class Transform(Protocol):
    """Changes batches on their way."""

    def apply(self, batch: Batch) -> Batch:
        """Returns the batch that takes the place of `batch`.

        Raises:
            RecordRejectedError: One row can't be transformed.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class Chain:
    """Transforms in the order of the `transforms` key; an empty chain hands batches through untouched."""

    transforms: tuple[Transform, ...] = ()

    def apply(self, batch: Batch) -> Batch:
        """Applies one after another."""
        for transform in self.transforms:
            batch = transform.apply(batch)
        return batch
