"""Positions stored in the same transaction as the rows, so that a row is written exactly once.

Invariant 2: whoever commits rows of a partition is the last who claimed it. Opening claims the partitions for one
stream; a transaction of any other stream finds no row to update and is given up. The generation alone would not do:
when a worker dies, its stream may still be writing here while the next one, of the same generation, reads where to go
on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from wherry.contract.errors import FencedError
from wherry.contract.position import Position
from wherry_jdbc.database import Database
from wherry_jdbc.tables import TableName, quoted


class PositionTable:
    """The table of positions of all pipelines that write to a database."""

    def __init__(self, database: Database, name: TableName, pipeline: str, generation: int) -> None:
        """Positions of one pipeline, for one stream under one generation."""
        self._database = database
        self._name = name
        self._pipeline = pipeline
        self._generation = generation
        self._holder = uuid.uuid4().hex
        self._claimed: set[str] = set()

    def create(self) -> None:
        """Makes the table if it isn't there."""
        self._database.lock(self._name.sql)
        self._database.execute(
            f"CREATE TABLE IF NOT EXISTS {self._name.sql} (pipeline text NOT NULL, partition text NOT NULL, "
            f'"offset" text, generation bigint NOT NULL, holder text NOT NULL, '
            f"updated timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (pipeline, partition))"
        )
        self._database.commit()

    def claim(self, partitions: Sequence[str], *, commit: bool = True) -> list[Position]:
        """Takes partitions over and tells what is stored for them. Waits for a transaction that is storing it just now.

        Args:
            partitions: The partitions.
            commit: Whether this is a transaction of its own, rather than part of one that is under way.

        Raises:
            FencedError: A newer generation has them.
        """
        found = []
        for partition in sorted(partitions):
            rows = self._database.execute(
                f"INSERT INTO {self._name.sql} AS p (pipeline, partition, generation, holder) VALUES ($1, $2, $3, $4) "
                "ON CONFLICT (pipeline, partition) DO UPDATE SET generation = EXCLUDED.generation, "
                'holder = EXCLUDED.holder WHERE p.generation <= EXCLUDED.generation RETURNING p."offset"',
                (self._pipeline, partition, self._generation, self._holder),
            )
            if not rows:
                self._database.rollback()
                raise self._fenced(partition)
            found.append(Position(partition, rows[0][0]))
        if commit:
            self._database.commit()
        self._claimed.update(partitions)
        return [position for position in found if position.offset is not None]

    def unclaimed(self, partitions: Iterable[str]) -> list[str]:
        """Those of the partitions that have to be claimed before rows of them are written."""
        return [partition for partition in dict.fromkeys(partitions) if partition not in self._claimed]

    def store(self, positions: Iterable[Position]) -> None:
        """Writes positions within the open transaction.

        Raises:
            FencedError: Another stream has taken a partition over; the transaction has to be given up.
        """
        for position in positions:
            rows = self._database.execute(
                f"INSERT INTO {self._name.sql} AS p (pipeline, partition, {quoted('offset')}, generation, holder) "
                "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (pipeline, partition) DO UPDATE "
                'SET "offset" = EXCLUDED."offset", updated = now() '
                "WHERE p.holder = EXCLUDED.holder RETURNING 1",
                (self._pipeline, position.partition, position.offset, self._generation, self._holder),
            )
            if not rows:
                raise self._fenced(position.partition)

    def alter(self, positions: Iterable[Position]) -> None:
        """Sets positions as an operator asked for, whatever the generation; an absent offset forgets the partition."""
        for position in positions:
            self._database.execute(
                f"DELETE FROM {self._name.sql} WHERE pipeline = $1 AND partition = $2",
                (self._pipeline, position.partition),
            )
            if position.offset is not None:
                self._database.execute(
                    f"INSERT INTO {self._name.sql} (pipeline, partition, {quoted('offset')}, generation, holder) "
                    "VALUES ($1, $2, $3, 0, '')",
                    (self._pipeline, position.partition, position.offset),
                )
        self._database.commit()

    def _fenced(self, partition: str) -> FencedError:
        return FencedError(
            f"a newer stream than this one of generation {self._generation} writes {partition} of {self._pipeline}"
        )
