"""The warm-up rule on hand-made series, and its properties on any series."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganbench.measure import steady_from, warmup_rounds

rounds = st.lists(st.integers(min_value=1, max_value=10**12), max_size=60)
leasts = st.integers(min_value=0, max_value=10)
windows = st.integers(min_value=1, max_value=8)
drifts = st.floats(min_value=0.001, max_value=2.0)
parts = st.floats(min_value=0.0, max_value=1.0)


def test_steady_rounds_lose_only_the_least() -> None:
    assert warmup_rounds([100] * 20) == 3
    assert warmup_rounds([100] * 20, least=0) == 0


def test_slow_first_rounds_are_left_out() -> None:
    series = [900, 800, 700, 600, 500, 400, 300, 200] + [100] * 32
    # The first window may still hold two slow rounds out of five: its median does not feel them.
    assert warmup_rounds(series) == 6
    assert steady_from(series) == 6


def test_one_slow_round_later_on_does_not_count_as_drift() -> None:
    series = [100] * 20
    series[6] = 10_000
    assert warmup_rounds(series) == 3


def test_rounds_that_drift_until_the_end_lose_all_that_is_allowed() -> None:
    series = [2**n for n in range(40)]
    assert steady_from(series) is None
    assert warmup_rounds(series) == 20
    assert warmup_rounds(series, most=0.25) == 10


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 0), (4, 2), (6, 3), (12, 3)])
def test_too_few_rounds_to_judge_lose_the_least_within_what_is_allowed(count: int, expected: int) -> None:
    series = [2**n for n in range(count)]
    assert steady_from(series) is None
    assert warmup_rounds(series) == expected


def test_the_difference_is_relative_to_the_larger_median_and_the_bound_is_excluded() -> None:
    falls = [100] * 5 + [90] * 5
    assert steady_from(falls, least=0, most=0.0, drift=0.1) is None
    assert steady_from(falls, least=0, most=0.0, drift=0.101) == 0
    assert steady_from(falls[::-1], least=0, most=0.0, drift=0.1) is None
    assert steady_from(falls[::-1], least=0, most=0.0, drift=0.101) == 0


@given(rounds, leasts, windows, drifts, parts)
def test_never_more_than_allowed_and_never_less_than_the_least_within_that(
    series: list[int], least: int, window: int, drift: float, most: float
) -> None:
    found = warmup_rounds(series, least, window, drift, most)
    assert min(least, int(most * len(series))) <= found <= most * len(series)


@given(rounds, leasts, windows, drifts, parts)
def test_what_is_found_is_the_smallest_number_that_keeps_the_rule(
    series: list[int], least: int, window: int, drift: float, most: float
) -> None:
    def steady(n: int) -> bool:
        before = median(series[n : n + window])
        after = median(series[n + window : n + 2 * window])
        return before == after or abs(before - after) < drift * max(before, after)

    candidates = range(least, min(int(most * len(series)), len(series) - 2 * window) + 1)
    expected = next((n for n in candidates if steady(n)), None)
    assert steady_from(series, least, window, drift, most) == expected
    if expected is not None:
        assert warmup_rounds(series, least, window, drift, most) == expected


@given(rounds, rounds)
def test_later_rounds_do_not_change_a_number_once_found(series: list[int], more: list[int]) -> None:
    found = steady_from(series)
    if found is not None:
        assert steady_from(series + more) == found


@given(st.lists(st.integers(min_value=1, max_value=10**9), max_size=40), st.integers(0, 10))
def test_the_unit_of_time_does_not_matter(series: list[int], power: int) -> None:
    assert warmup_rounds([value * 2**power for value in series]) == warmup_rounds(series)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"least": -1}, "least is a number of rounds, 0 or more, got -1"),
        ({"window": 0}, "window is a number of rounds, 1 or more, got 0"),
        ({"drift": 0.0}, "drift is a relative difference above 0, got 0.0"),
        ({"drift": float("nan")}, "drift is a relative difference above 0, got nan"),
        ({"most": 1.5}, "most is a part of all rounds from 0 to 1, got 1.5"),
    ],
)
def test_arguments_outside_their_range_are_refused(arguments: dict[str, float], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        warmup_rounds([100] * 20, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rule):
        steady_from([], **arguments)  # type: ignore[arg-type]
