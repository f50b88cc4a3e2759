"""Positions stored in the same transaction as the rows, so that a row is written exactly once.

Invariant 2: whoever commits rows of a partition holds the newest generation of it. Opening claims the partitions for a
generation; a transaction of an older one finds no row to update and is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wherry.contract.errors import FencedError
from wherry.contract.position import Position
from wherry_jdbc.database import Database
from wherry_jdbc.tables import TableName, quoted


class PositionTable:
    """The table of positions of all pipelines that write to a database."""

    def __init__(self, database: Database, name: TableName, pipeline: str, generation: int) -> None:
        """Positions of one pipeline under one generation."""
        self._database = database
        self._name = name
        self._pipeline = pipeline
        self._generation = generation

    def create(self) -> None:
        """Makes the table if it isn't there."""
        self._database.lock(self._name.sql)
        self._database.execute(
            f"CREATE TABLE IF NOT EXISTS {self._name.sql} (pipeline text NOT NULL, partition text NOT NULL, "
            f'"offset" text, generation bigint NOT NULL, updated timestamptz NOT NULL DEFAULT now(), '
            f"PRIMARY KEY (pipeline, partition))"
        )
        self._database.commit()

    def claim(self, partitions: Sequence[str]) -> list[Position]:
        """Takes partitions over and tells what is stored for them.

        Raises:
            FencedError: A newer generation has them.
        """
        found = []
        for partition in sorted(partitions):
            rows = self._database.execute(
                f"INSERT INTO {self._name.sql} AS p (pipeline, partition, generation) VALUES ($1, $2, $3) "
                "ON CONFLICT (pipeline, partition) DO UPDATE SET generation = EXCLUDED.generation "
                'WHERE p.generation <= EXCLUDED.generation RETURNING p."offset"',
                (self._pipeline, partition, self._generation),
            )
            if not rows:
                self._database.rollback()
                raise self._fenced(partition)
            found.append(Position(partition, rows[0][0]))
        self._database.commit()
        return [position for position in found if position.offset is not None]

    def store(self, positions: Iterable[Position]) -> None:
        """Writes positions within the open transaction.

        Raises:
            FencedError: A newer generation has taken a partition over; the transaction has to be given up.
        """
        for position in positions:
            rows = self._database.execute(
                f"INSERT INTO {self._name.sql} AS p (pipeline, partition, {quoted('offset')}, generation) "
                "VALUES ($1, $2, $3, $4) ON CONFLICT (pipeline, partition) DO UPDATE "
                'SET "offset" = EXCLUDED."offset", generation = EXCLUDED.generation, updated = now() '
                "WHERE p.generation <= EXCLUDED.generation RETURNING 1",
                (self._pipeline, position.partition, position.offset, self._generation),
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
                    f"INSERT INTO {self._name.sql} (pipeline, partition, {quoted('offset')}, generation) "
                    "VALUES ($1, $2, $3, 0)",
                    (self._pipeline, position.partition, position.offset),
                )
        self._database.commit()

    def _fenced(self, partition: str) -> FencedError:
        return FencedError(f"a newer generation than {self._generation} writes {partition} of {self._pipeline}")
