"""Proves that a table holds exactly the rows of a CSV file: as many of each, none else. DuckDB reads both by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_ROWS = 5
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class Proof:
    """What a comparison found."""

    sent: int
    landed: int
    missing: int
    """Rows of the file that the table lacks, counted with repetition."""
    extra: int
    """Rows of the table that the file doesn't have, counted with repetition."""
    columns: tuple[str, ...]
    sample: tuple[tuple[object, ...], ...]

    @property
    def equal(self) -> bool:
        """Whether the table is the file."""
        return self.missing == 0 == self.extra and self.sent == self.landed


def compare(database: Path, table: str, csv_file: Path) -> Proof:
    """Compares a table of a DuckDB file with a CSV file, whatever the order of their rows.

    Args:
        database: The DuckDB file; nobody may be writing to it.
        table: Table in it.
        csv_file: The file that was sent; with a header.

    Returns:
        The counts, and the first rows that landed.
    """
    import duckdb  # only the demonstration needs it

    with duckdb.connect(str(database), read_only=True) as connection:
        described = connection.execute(f"DESCRIBE {_quoted(table)}").fetchall()
        types = {str(row[0]): str(row[1]) for row in described}
        query = "CREATE TEMP VIEW sent AS SELECT * FROM read_csv(?, header=true, all_varchar=true, quote='\"')"
        connection.execute(query.replace("?", _text(str(csv_file))))
        names = [str(row[0]) for row in connection.execute("DESCRIBE sent").fetchall()]
        sent = ", ".join(_comparable(name, types.get(name, "VARCHAR")) for name in names)
        landed = ", ".join(
            _comparable(name, types[name]) if name in types else f"NULL AS {_quoted(name)}" for name in names
        )
        a, b = f"SELECT {sent} FROM sent", f"SELECT {landed} FROM {_quoted(table)}"
        queries = (a, b, f"{a} EXCEPT ALL {b}", f"{b} EXCEPT ALL {a}")
        counts = [connection.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0] for query in queries]
        sample = connection.execute(
            f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)} ORDER BY 1 LIMIT {SAMPLE_ROWS}"
        ).fetchall()
    sent_count, landed_count, missing, extra = counts
    return Proof(sent_count, landed_count, missing, extra, tuple(names), tuple(sample))


def _comparable(name: str, kind: str) -> str:
    """A column in a form that is equal where the values are: numbers as numbers, an absent text as an empty one."""
    if kind in NUMBERS:
        return f"TRY_CAST({_quoted(name)} AS DOUBLE) AS {_quoted(name)}"
    if kind == "BOOLEAN":
        return f"TRY_CAST({_quoted(name)} AS BOOLEAN) AS {_quoted(name)}"
    return f"coalesce(CAST({_quoted(name)} AS VARCHAR), '') AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def as_rows(proof: Proof) -> Sequence[tuple[str, ...]]:
    """The sample as a table of texts, header first."""
    return [proof.columns, *(tuple("" if cell is None else str(cell) for cell in row) for row in proof.sample)]
