"""Makes columns of values, whole blocks at a time. Pure: the same seed, task and block give the same values.

A block is a fixed number of rows, so that any row can be made again without those before it.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

BLOCK_ROWS = 16_384
TEXT_POOL = 4_096
TEXT_LENGTH_DEFAULT = (5, 15)
LIST_LENGTH_MAX = 5
NULL_SHARE = 0.1
_LETTERS = np.array(list(string.ascii_lowercase))


class Generator(Protocol):
    """Makes one column."""

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Makes values.

        Args:
            chance: Where randomness comes from; belongs to this block and column.
            start: Index of the first row in the whole stream of the task.
            count: Rows to make.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sequenced:
    """Numbers that follow one another."""

    type: pa.DataType
    start: int = 0
    step: int = 1

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Row i gets start + i * step."""
        first = self.start + start * self.step
        return pa.array(np.arange(count, dtype=np.int64) * self.step + first).cast(self.type)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole or fractional numbers within bounds, both ends included for whole ones."""

    type: pa.DataType
    low: float
    high: float

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Evenly spread numbers."""
        if pa.types.is_floating(self.type):
            return pa.array(chance.uniform(self.low, self.high, count).round(6)).cast(self.type)
        return pa.array(chance.integers(int(self.low), int(self.high), count, endpoint=True)).cast(self.type)


@dataclass(frozen=True, slots=True)
class Instants:
    """Moments that rise by a step from a fixed beginning."""

    start_ms: int
    step_ms: int

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Row i gets start_ms + i * step_ms."""
        first = self.start_ms + start * self.step_ms
        return pa.array(np.arange(count, dtype=np.int64) * self.step_ms + first).cast(pa.timestamp("ms", "UTC"))


@dataclass(frozen=True, slots=True)
class Flags:
    """Truth values, half and half."""

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Evenly spread truth values."""
        return pa.array(chance.integers(0, 2, count, dtype=np.int8).astype(bool))


@dataclass(frozen=True, slots=True)
class Choices:
    """One of a few values."""

    values: pa.Array

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Evenly spread choices."""
        return self.values.take(pa.array(chance.integers(0, len(self.values), count)))


@dataclass(frozen=True, slots=True)
class Texts:
    """Lower-case words, or bytes of them."""

    type: pa.DataType
    length_min: int = TEXT_LENGTH_DEFAULT[0]
    length_max: int = TEXT_LENGTH_DEFAULT[1]
    prefix: str = ""

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Words from a pool that is made anew for each block."""
        lengths = chance.integers(self.length_min, self.length_max, TEXT_POOL, endpoint=True)
        letters = "".join(_LETTERS[chance.integers(0, 26, int(lengths.sum()))])
        ends = np.cumsum(lengths)
        pool = [self.prefix + letters[end - size : end] for end, size in zip(ends, lengths, strict=True)]
        return pa.array(pool, pa.string()).take(pa.array(chance.integers(0, TEXT_POOL, count))).cast(self.type)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Texts that end in a number, such as User_7."""

    prefix: str
    low: int
    high: int

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Evenly spread numbers behind the prefix."""
        span = min(self.high - self.low + 1, TEXT_POOL)
        pool = pa.array([f"{self.prefix}{self.low + i}" for i in range(span)])
        return pool.take(pa.array(chance.integers(0, span, count)))


@dataclass(frozen=True, slots=True)
class Records:
    """Nested fields."""

    fields: Mapping[str, Generator]

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """One child for each field."""
        children = [field.make(chance, start, count) for field in self.fields.values()]
        return pa.StructArray.from_arrays(children, names=list(self.fields))


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of values."""

    item: Generator
    length_max: int = LIST_LENGTH_MAX

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Lengths from 0 on."""
        ends = np.concatenate(([0], np.cumsum(chance.integers(0, self.length_max, count, endpoint=True))))
        return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), self.item.make(chance, start, int(ends[-1])))


@dataclass(frozen=True, slots=True)
class Sometimes:
    """Values of which some are null."""

    item: Generator
    null_share: float = NULL_SHARE

    def make(self, chance: np.random.Generator, start: int, count: int) -> pa.Array:
        """Replaces a share by null."""
        gone = chance.random(count) < self.null_share
        kept = np.where(gone, -1, np.arange(count))
        return self.item.make(chance, start, count).take(pa.array(kept, mask=gone))


def block(record: Records, seed: int, task: int, number: int) -> pa.StructArray:
    """Makes one block of rows.

    Args:
        record: What to make.
        seed: Chooses the values.
        task: Tasks make different values.
        number: Index of the block in the task's stream.
    """
    chance = np.random.default_rng((seed, task, number))
    return record.make(chance, number * BLOCK_ROWS, BLOCK_ROWS)


def choices(values: Sequence[Any], arrow: pa.DataType | None = None) -> Choices:
    """One of some Python values."""
    return Choices(pa.array(list(values), arrow))
