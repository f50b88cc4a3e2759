"""Ratios and verdicts of the table."""

from __future__ import annotations

from tests.bench.figures import OTHER_CPU, Figure, rows, table

SPEED = Figure("speed", "speed", "1/s", 0, ratio_min=4.0)
COST = Figure("cost", "cost", "µs", 1, ratio_max=0.25)
START = Figure("start", "start", "s", 1, value_max=2.0)


def test_ratios_are_taken_run_by_run() -> None:
    """The spread of the ratios is not the ratio of the spreads: neighbouring runs share conditions."""
    runs = {"wherry": [{"speed": 400.0}, {"speed": 900.0}], "connect": [{"speed": 100.0}, {"speed": 300.0}]}
    (row,) = rows([SPEED], runs)
    assert row.ratio is not None
    assert (row.ratio.least, row.ratio.median, row.ratio.greatest) == (3.0, 3.5, 4.0)


def test_a_missed_ratio_is_said() -> None:
    (row,) = rows([SPEED], {"wherry": [{"speed": 399.0}], "connect": [{"speed": 100.0}]})
    assert row.verdict == "MISSED"


def test_a_cost_below_its_bound_is_met() -> None:
    (row,) = rows([COST], {"wherry": [{"cost": 25.0}], "connect": [{"cost": 100.0}]})
    assert row.verdict == "met"


def test_an_absolute_target_needs_wherry_alone() -> None:
    (row,) = rows([START], {"wherry": [{"start": 2.5}]})
    assert row.verdict == "MISSED"


def test_a_least_value_needs_wherry_alone() -> None:
    share = Figure("share", "share", "ratio", 2, value_min=0.85, compared=False)
    verdicts = [rows([share], {"wherry": [{"share": value}]})[0].verdict for value in (0.9, 0.8)]
    assert verdicts == ["met", "MISSED"]
    assert "wherry ≥ 0.85" in table([share], {"wherry": [{"share": 1.0}]})


def test_a_system_measured_alone_gives_no_verdict_on_a_ratio() -> None:
    (row,) = rows([SPEED], {"connect": [{"speed": 100.0}]})
    assert (row.verdict, row.ratio) == ("", None)


def test_a_figure_nobody_measured_has_no_row() -> None:
    assert rows([SPEED], {"connect": [{"cost": 1.0}]}) == []


def test_a_disturbance_is_shown_and_not_compared() -> None:
    (row,) = rows([OTHER_CPU], {"wherry": [{"other_cpu_percent": 5.0}], "connect": [{"other_cpu_percent": 2.0}]})
    assert row.ratio is None


def test_the_table_is_markdown_with_equal_columns() -> None:
    lines = table(
        [SPEED, COST], {"wherry": [{"speed": 500.0, "cost": 1.0}], "connect": [{"speed": 100.0, "cost": 8.0}]}
    )
    assert len({len(text) for text in lines.splitlines()}) == 1
    assert "5.00" in lines
