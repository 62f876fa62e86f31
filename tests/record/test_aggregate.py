"""Seeds summed up, held against scipy's own t interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ganbench.record.aggregate import Aggregate, aggregate, aggregate_all, mean_curves

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@given(VALUES)
def test_the_interval_is_scipys(values: list[float]) -> None:
    got = aggregate(values)
    assert got.n == len(values)
    assert got.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert got.std == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)
    assert got.std is not None
    if got.std == 0:
        assert got.low == got.high == got.mean
        return
    low, high = stats.t.interval(0.95, len(values) - 1, loc=got.mean, scale=got.std / math.sqrt(len(values)))
    assert (got.low, got.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


def test_a_sum_by_hand() -> None:
    got = aggregate([1.0, 2.0, 3.0])
    assert (got.mean, got.n, got.std) == (2.0, 3, 1.0)
    assert (got.low, got.high) == pytest.approx((2 - 4.302652729749464 / 3**0.5, 2 + 4.302652729749464 / 3**0.5))


def test_one_seed_has_no_spread() -> None:
    assert aggregate([2.5]) == Aggregate(mean=2.5, n=1, std=None, low=None, high=None)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf], [-math.inf]])
def test_nothing_and_what_is_not_finite_has_no_mean(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all finite, got"):
        aggregate(values)


def test_each_key_is_summed_over_the_rows_that_have_it() -> None:
    rows = [{"a": 1.0, "b": 5.0}, {"a": 3.0}, {"a": math.nan, "c": math.inf}]
    got = aggregate_all(rows)
    assert set(got) == {"a", "b"}
    assert (got["a"].mean, got["a"].n) == (2.0, 2)
    assert got["b"] == Aggregate(mean=5.0, n=1)
    assert aggregate_all([]) == {}


def test_a_mean_curve_stands_where_all_its_seeds_have_a_point() -> None:
    curves = [
        {"loss/g": {1: 1.0, 2: 2.0, 4: 4.0}, "quality/recall": {4: 0.5}},
        {"loss/g": {4: 6.0, 2: 4.0, 8: 1.0}},
    ]
    got = mean_curves(curves)
    assert got == {"loss/g": {2: 3.0, 4: 5.0}, "quality/recall": {4: 0.5}}
    assert list(got["loss/g"]) == [2, 4]
    assert mean_curves([]) == {}


@given(st.lists(st.dictionaries(st.integers(0, 5), st.floats(-10, 10)), min_size=1, max_size=4))
def test_a_mean_curve_is_the_mean_of_its_seeds(seeds: list[dict[int, float]]) -> None:
    got = mean_curves([{"loss/g": seed} for seed in seeds])["loss/g"]
    assert set(got) == set.intersection(*(set(seed) for seed in seeds))
    for step, value in got.items():
        assert value == pytest.approx(np.mean([seed[step] for seed in seeds]), abs=1e-12)
