"""Figures, their ratios between the two systems, and the table that is printed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WHERRY, CONNECT = "wherry", "connect"
SYSTEMS = (WHERRY, CONNECT)


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing a flow measures. `ratio_*` bound Wherry divided by Kafka Connect, `value_*` Wherry alone.

    What is no property of the systems, like disturbance, is not compared.
    """

    key: str
    label: str
    unit: str
    digits: int = 1
    ratio_min: float | None = None
    ratio_max: float | None = None
    value_min: float | None = None
    value_max: float | None = None
    compared: bool = True

    @property
    def target(self) -> str:
        """The target as the table shows it."""
        if self.ratio_min is not None:
            return f"ratio ≥ {self.ratio_min:g}"
        if self.ratio_max is not None:
            return f"ratio ≤ {self.ratio_max:g}"
        if self.value_min is not None:
            return f"wherry ≥ {self.value_min:g}"
        if self.value_max is not None:
            return f"wherry ≤ {self.value_max:g}"
        return ""

    def met(self, wherry: float | None, ratio: float | None) -> bool | None:
        """Whether the medians meet the target; None when there is none, or not both were measured."""
        if self.value_min is not None:
            return None if wherry is None else wherry >= self.value_min
        if self.value_max is not None:
            return None if wherry is None else wherry <= self.value_max
        if ratio is None:
            return None
        if self.ratio_min is not None:
            return ratio >= self.ratio_min
        if self.ratio_max is not None:
            return ratio <= self.ratio_max
        return None


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the median and the greatest of several runs."""

    least: float
    median: float
    greatest: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        """None for no values."""
        if not values:
            return None
        return Spread(min(values), statistics.median(values), max(values))

    def text(self, digits: int) -> str:
        """`median (least-greatest)`, one number when there was one run."""
        if self.least == self.greatest:
            return f"{self.median:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({self.least:,.{digits}f}-{self.greatest:,.{digits}f})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    figure: Figure
    by_system: Mapping[str, Spread | None]
    ratio: Spread | None

    @property
    def verdict(self) -> str:
        """`met`, `MISSED` or nothing."""
        wherry = self.by_system.get(WHERRY)
        met = self.figure.met(wherry.median if wherry else None, self.ratio.median if self.ratio else None)
        return "" if met is None else ("met" if met else "MISSED")


OTHER_CPU = Figure("other_cpu_percent", "CPU of everything else", "% of machine", 0, compared=False)
"""The share of the machine that neither the measured processes nor the harness used."""

Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""For each system the figures of each of its runs, in order."""


def rows(figures: Sequence[Figure], runs: Runs) -> list[Row]:
    """One row per figure that was measured; ratios are taken run by run, then spread."""
    found = []
    for figure in figures:
        values = {name: [run[figure.key] for run in runs.get(name, ()) if figure.key in run] for name in SYSTEMS}
        if not any(values.values()):
            continue
        pairs = zip(values[WHERRY], values[CONNECT], strict=False) if figure.compared else ()
        ratios = [ours / theirs for ours, theirs in pairs if theirs]
        found.append(Row(figure, {name: Spread.of(values[name]) for name in SYSTEMS}, Spread.of(ratios)))
    return found


def table(figures: Sequence[Figure], runs: Runs) -> str:
    """The comparison as a Markdown table that also reads well on a terminal."""
    lines: list[tuple[str, ...]] = [("figure", "unit", "wherry", "connect", "wherry ÷ connect", "target", "")]
    for row in rows(figures, runs):
        cells = [_cell(row.by_system[name], row.figure.digits) for name in SYSTEMS]
        lines.append((row.figure.label, row.figure.unit, *cells, _cell(row.ratio, 2), row.figure.target, row.verdict))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = []
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        texts.append(f"| {' | '.join(padded)} |")
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)


def _cell(spread: Spread | None, digits: int) -> str:
    return "-" if spread is None else spread.text(digits)
