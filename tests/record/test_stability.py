from __future__ import annotations

import math
import random
import subprocess
import sys
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ganbench.record.stability import least_samples, median_interval, rounds_needed

TIMES = st.lists(st.floats(0.1, 100), max_size=60)


@given(st.integers(1, 3000), st.floats(0.5, 0.999))
def test_ranks_are_those_of_the_binomial(n: int, level: float) -> None:
    interval = median_interval(list(range(1, n + 1)), level)

    def missed(k: int) -> float:
        return float(2 * stats.binom.cdf(k - 1, n, 0.5))

    if interval is None:
        assert missed(1) > 1 - level - 1e-9
        return
    low, high = interval
    assert low + high == n + 1
    assert missed(int(low)) <= 1 - level + 1e-9
    assert low == (n + 1) // 2 or missed(int(low) + 1) > 1 - level - 1e-9


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_ranks_of_very_many(n: int) -> None:
    interval = median_interval(range(1, n + 1))
    assert interval is not None
    assert interval[0] == pytest.approx(stats.binom.ppf(0.025, n, 0.5), abs=1)


@pytest.mark.parametrize("n", [6, 15, 60])
def test_covers_the_median_of_skewed_rounds(n: int) -> None:
    rng, hits, tables = random.Random(3), 0, 2000
    for _ in range(tables):
        low, high = median_interval([rng.lognormvariate(0, 1) for _ in range(n)]) or (math.inf, 0)
        hits += low <= 1 <= high
    assert 0.94 <= hits / tables <= 0.985


@given(TIMES)
def test_holds_the_samples_median_whatever_their_order(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert (interval is None) is (len(samples) < 6)
    if interval is not None:
        assert interval[0] <= median(samples) <= interval[1]
        assert interval == median_interval(sorted(samples, reverse=True))


@pytest.mark.parametrize(("level", "least"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_fewest_samples(level: float, least: int) -> None:
    assert least_samples(level) == least
    assert median_interval(range(least), level) == (0, least - 1)
    assert median_interval(range(least - 1), level) is None


def test_steady_rounds_need_no_more() -> None:
    assert rounds_needed([10.0] * 6, 0.01) == 0
    assert rounds_needed([10.0, 10.01] * 20, 0.01) == 0


def test_too_few_rounds_need_an_interval_first() -> None:
    assert rounds_needed([], 0.01) == 6
    assert rounds_needed([10.0] * 4, 0.01) == 2
    assert rounds_needed([10.0] * 4, 0.01, level=0.99) == 4


def test_twice_too_wide_needs_four_times_the_rounds() -> None:
    samples = [9.0, 11.0] * 10
    assert median_interval(samples) == (9, 11)
    assert rounds_needed(samples, 0.1) == 60


@given(TIMES, st.floats(1e-6, 2), st.floats(0.5, 0.99))
def test_zero_says_narrow_enough_and_more_is_bounded(samples: list[float], share: float, level: float) -> None:
    more = rounds_needed(samples, share, level)
    interval = median_interval(samples, level)
    narrow = interval is not None and interval[1] - interval[0] < share * median(samples)
    assert (more == 0) is narrow
    assert more <= max(9 * len(samples), least_samples(level))


def test_estimates_are_about_right() -> None:
    """Following the advice until it is 0 ends, at a number of rounds near the one theory asks for."""
    rng = random.Random(1)
    samples = [rng.gauss(10, 1) for _ in range(10)]
    asked = 0
    while more := rounds_needed(samples, 0.05):
        samples += [rng.gauss(10, 1) for _ in range(more)]
        asked += 1
    # Width 2 * 1.96 * 1.2533 / sqrt(n) = 0.5 at n = 97.
    assert 40 < len(samples) < 250
    assert asked < 10


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_samples_must_be_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="must be finite, got"):
        median_interval([1.0, bad])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_rounds_must_take_time(bad: float) -> None:
    with pytest.raises(ValueError, match="positive and finite, got"):
        rounds_needed([1.0, bad], 0.1)


@pytest.mark.parametrize("share", [0.0, -0.1, math.nan, math.inf])
def test_share_must_be_positive(share: float) -> None:
    with pytest.raises(ValueError, match=r"share must be positive.*got"):
        rounds_needed([1.0], share)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_are_shares(level: float) -> None:
    for call in (lambda: median_interval([1.0], level), lambda: rounds_needed([1.0], 0.1, level)):
        with pytest.raises(ValueError, match=f"between 0 and 1.*got {level}"):
            call()


def test_loads_nothing_heavy() -> None:
    code = (
        "import sys, ganbench.record.stability; print([m for m in ('numpy', 'scipy', 'pandas', 'torch') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
