"""The arithmetic behind the figures."""

from __future__ import annotations

import pytest
from tests.bench.flows.discard import mid_run
from tests.bench.measure import Point, interpolate, percentile, rate, slope_per_minute, watch
from tests.bench.processes import BenchError


def line(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(at=at, count=count) for at, count in pairs]


def test_interpolation_lies_on_the_line_between_neighbours() -> None:
    assert interpolate([0.0, 10.0, 20.0], [0.0, 100.0, 400.0], 15.0) == 250.0


def test_interpolation_is_constant_outside_what_was_sampled() -> None:
    assert [interpolate([1.0, 2.0], [5.0, 7.0], at) for at in (0.0, 3.0)] == [5.0, 7.0]


def test_interpolation_hits_a_sample_exactly() -> None:
    assert interpolate([1.0, 2.0, 3.0], [5.0, 7.0, 8.0], 2.0) == 7.0


def test_a_rate_leaves_out_what_the_first_point_already_held() -> None:
    assert rate(line((10.0, 500.0), (11.0, 800.0), (12.0, 2500.0))) == 1000.0


def test_a_rate_needs_more_than_one_moment() -> None:
    with pytest.raises(BenchError, match="use more records"):
        rate(line((10.0, 500.0)))


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)])
def test_percentiles_are_by_nearest_rank(share: float, expected: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], share) == expected


def test_p99_of_few_values_is_the_greatest() -> None:
    assert percentile([1.0, 2.0, 9.0], 0.99) == 9.0


def test_a_slope_is_per_minute() -> None:
    assert slope_per_minute(line((0.0, 100.0), (30.0, 101.0), (60.0, 102.0))) == pytest.approx(2.0)


def test_a_flat_line_has_no_slope() -> None:
    assert slope_per_minute(line((0.0, 100.0), (1.0, 100.0))) == 0.0


def test_mid_run_leaves_out_each_partitions_last_commit() -> None:
    """The last commit comes a flush interval after the work was done, so it would make the rate look too small."""
    first = line((1.0, 100.0), (2.0, 200.0), (3.0, 300.0), (4.0, 310.0))
    second = line((1.5, 100.0), (2.5, 200.0), (3.5, 300.0), (4.5, 310.0))
    begin, end = mid_run([first, second])
    assert (begin.at, end.at) == (1.5, 3.0)
    assert rate([begin, end]) == pytest.approx(200.0)


def test_mid_run_of_too_few_commits_is_the_whole_run() -> None:
    begin, end = mid_run([line((1.0, 100.0)), line((2.0, 50.0), (3.0, 100.0))])
    assert (begin, end) == (Point(1.0, 150.0), Point(3.0, 200.0))


def test_watching_gives_a_point_for_each_change() -> None:
    held = iter([0, 0, 3, 3, 7, 10])
    points = watch(lambda: next(held), target=10, failure=lambda: None, poll_seconds=0.0)
    assert [point.count for point in points] == [3, 7, 10]


def test_watching_tells_why_a_connector_failed() -> None:
    with pytest.raises(BenchError, match="after 0 of 10 records: no such table"):
        watch(lambda: 0, target=10, failure=lambda: "no such table", poll_seconds=0.1)
