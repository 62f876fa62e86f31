from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ganbench.report.significance import PairedTest, blocks_needed, holm, paired_tests, sign_flip_p, smallest_p
from ganbench.report.statistics import (
    Floor,
    Ratio,
    Scale,
    noise_floor,
    paired_ratio,
    unpaired_ratio,
    verdict,
    wilson,
)

Array = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]
FIGURES = st.lists(st.tuples(*2 * [st.floats(1e-3, 1e3)]), min_size=3, max_size=12)
INTERVALS = st.tuples(*2 * [st.floats(0.2, 5)]).map(
    lambda ends: Ratio(math.sqrt(ends[0] * ends[1]), min(ends), max(ends), 5, "")
)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def between(low: float, high: float) -> Ratio:
    return Ratio(math.sqrt(low * high), low, high, 5, "")


def width(ratio: Ratio) -> float:
    assert ratio.low is not None
    assert ratio.high is not None
    return math.log(ratio.high / ratio.low)


# Noise of a figure, as a factor.


def normal(rng: np.random.Generator, n: int) -> Array:
    return 1 + 0.05 * rng.standard_normal(n)


def lognormal(rng: np.random.Generator, n: int) -> Array:
    return rng.lognormal(0, 0.3, n)


def lognormal_spikes(rng: np.random.Generator, n: int) -> Array:
    return 1 + 0.1 * rng.lognormal(0, 1, n)


def heavy_tails(rng: np.random.Generator, n: int) -> Array:
    return np.exp(0.03 * rng.standard_t(3, n))


def exact(_: np.random.Generator, n: int) -> Array:
    return np.ones(n)


def mild_skew(rng: np.random.Generator, n: int) -> Array:
    return 1 + 0.05 * rng.lognormal(0, 0.5, n)


def covered(arm: Noise, reference: Noise, n: int, tables: int = 6000, resamples: int = 600) -> float:
    """The share of simulated tables whose interval holds the true ratio. Blocks differ by far more than the noise."""
    truth = 1.3 * math.exp(np.log(arm(seeded(1), 10**6)).mean() - np.log(reference(seeded(2), 10**6)).mean())
    rng, hits = seeded(7), 0
    for _ in range(tables):
        block = 12 * rng.lognormal(0, 0.4, n)
        ratio = paired_ratio(1.3 * block * arm(rng, n), block * reference(rng, n), rng, resamples=resamples)
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= truth <= ratio.high
    return hits / tables


@pytest.mark.parametrize("n", [10, 20])
@pytest.mark.parametrize(
    ("arm", "reference"),
    [
        (normal, normal),
        (lognormal, lognormal),
        (lognormal_spikes, lognormal_spikes),
        (heavy_tails, normal),
        (mild_skew, exact),
    ],
    ids=lambda noise: noise.__name__,
)
def test_coverage_is_honest(arm: Noise, reference: Noise, n: int) -> None:
    assert 0.93 <= covered(arm, reference, n) <= 0.97


@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_blocks_are_covered_too(n: int) -> None:
    assert 0.93 <= covered(normal, normal, n, tables=1000) <= 0.98


def test_unpaired_interval_covers_where_blocks_are_alike() -> None:
    rng, hits = seeded(3), 0
    for _ in range(1000):
        ratio = unpaired_ratio(2 * lognormal(rng, 10), lognormal(rng, 12), rng, resamples=400)
        hits += (ratio.low or math.inf) <= 2 <= (ratio.high or 0)
    assert 0.93 <= hits / 1000 <= 0.98


def test_pairing_takes_drift_out() -> None:
    rng = seeded()
    drift = np.linspace(10, 30, 8)
    values, reference = 1.1 * drift * normal(rng, 8), drift * normal(rng, 8)
    paired, unpaired = paired_ratio(values, reference, rng), unpaired_ratio(values, reference, rng)
    assert paired.estimate == pytest.approx(unpaired.estimate)
    assert width(paired) < 0.5 * width(unpaired)
    assert paired.n == unpaired.n == 8


@given(FIGURES, st.floats(1e-3, 1e3))
def test_ratio_is_equivariant(pairs: list[tuple[float, float]], unit: float) -> None:
    a, b = columns(pairs)
    ratio = paired_ratio(a, b, seeded(), resamples=200)
    swapped = paired_ratio(b, a, seeded(), resamples=200)
    scaled = paired_ratio([unit * x for x in a], [unit * x for x in b], seeded(), resamples=200)
    dearer = paired_ratio([unit * x for x in a], b, seeded(), resamples=200)
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low <= ratio.estimate <= ratio.high
    near = {"rel": 1e-6}
    assert (swapped.estimate, swapped.low, swapped.high) == (
        pytest.approx(1 / ratio.estimate, **near),
        pytest.approx(1 / ratio.high, **near),
        pytest.approx(1 / ratio.low, **near),
    )
    for other, factor in ((scaled, 1), (dearer, unit)):
        assert (other.estimate, other.low, other.high) == (
            pytest.approx(factor * ratio.estimate, **near),
            pytest.approx(factor * ratio.low, **near),
            pytest.approx(factor * ratio.high, **near),
        )


def test_estimate_is_the_geometric_mean_of_ratios() -> None:
    ratio = paired_ratio([2, 9, 4], [1, 3, 2], seeded())
    assert ratio.estimate == pytest.approx(12 ** (1 / 3))
    assert ratio.kind == "Student's t over blocks"
    logs = np.log([2, 3, 2])
    oracle = np.exp(stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs)))
    assert (ratio.low, ratio.high) == (pytest.approx(oracle[0]), pytest.approx(oracle[1]))


def test_interval_is_never_narrower_than_students_and_follows_the_skew() -> None:
    values = [1.0, 1.01, 0.99, 1.0, 1.02, 1.0, 0.98, 1.01, 1.0, 1.8]
    ratio = paired_ratio(values, [1.0] * 10, seeded())
    logs = np.log(values)
    low, high = np.exp(stats.t.interval(0.95, 9, logs.mean(), stats.sem(logs)))
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low <= low * (1 + 1e-12)
    assert high < ratio.high < high**4
    assert ratio.kind == "paired bootstrap-t over blocks"


def test_higher_levels_are_wider() -> None:
    values, reference = lognormal(seeded(1), 9), lognormal(seeded(2), 9)
    widths = [width(paired_ratio(values, reference, seeded(), level=level)) for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


def test_welch_is_the_unpaired_oracle_for_few_blocks() -> None:
    a, b = [3.0, 4.0, 5.0], [1.0, 2.0, 2.5, 2.2]
    ratio = unpaired_ratio(a, b, seeded())
    oracle = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.95)
    assert (ratio.low, ratio.high) == (pytest.approx(math.exp(oracle.low)), pytest.approx(math.exp(oracle.high)))
    assert (ratio.n, ratio.kind) == (3, "Welch's t, unpaired")


@pytest.mark.parametrize("compare", [paired_ratio, unpaired_ratio])
class TestBothRatios:
    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_blocks_have_no_interval(self, compare: Callable[..., Ratio], n: int) -> None:
        ratio = compare([2.0] * n, [1.0] * n, seeded())
        assert ratio == Ratio(pytest.approx(2.0), None, None, n, f"too few blocks: n={n}, at least 3")

    @pytest.mark.parametrize("n", [3, 4, 5, 30])
    def test_equal_blocks_have_no_width(self, compare: Callable[..., Ratio], n: int) -> None:
        ratio = compare([0.3] * n, [0.1] * n, seeded())
        assert ratio.estimate == ratio.low == ratio.high == pytest.approx(3)

    def test_equal_ratios_but_for_rounding_have_no_width_when_paired(self, compare: Callable[..., Ratio]) -> None:
        blocks = [0.1, 7.3, 11.9, 1e5, 3e-4]
        ratio = compare([1.1 * x for x in blocks], blocks, seeded())
        assert (ratio.low == ratio.high) is (compare is paired_ratio)

    def test_one_odd_block_of_many_equal_gives_a_finite_interval(self, compare: Callable[..., Ratio]) -> None:
        ratio = compare([1.0] * 9 + [1.1], [1.0] * 10, seeded())
        assert ratio.low is not None
        assert ratio.high is not None
        assert 0.95 < ratio.low < 1 < ratio.high < 1.2

    def test_wildest_figures_stay_finite(self, compare: Callable[..., Ratio]) -> None:
        ratio = compare([1e-300, 1e300, 1.0], [1e300, 1e-300, 1.0], seeded())
        assert ratio.low is not None
        assert ratio.high is not None
        assert 0 < ratio.low < ratio.high < math.inf

    def test_same_generator_same_result_and_nothing_else_moves(self, compare: Callable[..., Ratio]) -> None:
        values, reference = lognormal(seeded(1), 9), lognormal(seeded(2), 9)
        kept = values.copy(), reference.copy()
        np.random.seed(5)
        state = np.random.get_state()[1].copy()  # type: ignore[union-attr]
        assert compare(values, reference, seeded(4)) == compare(values, reference, seeded(4))
        assert (np.random.get_state()[1] == state).all()  # type: ignore[union-attr]
        assert (values == kept[0]).all()
        assert (reference == kept[1]).all()

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
    def test_figures_must_be_positive_and_finite(self, compare: Callable[..., Ratio], bad: float) -> None:
        with pytest.raises(ValueError, match=r"values must be .* positive and finite, got \[1.0, "):
            compare([1.0, bad], [1.0, 1.0], seeded())
        with pytest.raises(ValueError, match=r"reference must be .* positive and finite"):
            compare([1.0, 1.0], [1.0, bad], seeded())

    def test_figures_must_be_there(self, compare: Callable[..., Ratio]) -> None:
        with pytest.raises(ValueError, match=r"values must be at least one figure.*got \[\]"):
            compare([], [], seeded())

    @pytest.mark.parametrize("level", [0, 1, 95])
    def test_levels_are_shares(self, compare: Callable[..., Ratio], level: float) -> None:
        with pytest.raises(ValueError, match=f"between 0 and 1.*got {level}"):
            compare([1.0], [1.0], seeded(), level=level)

    def test_resamples_must_be_many(self, compare: Callable[..., Ratio]) -> None:
        with pytest.raises(ValueError, match="at least 100, got 9"):
            compare([1.0], [1.0], seeded(), resamples=9)


@pytest.mark.parametrize("compare", [lambda a, b: paired_ratio(a, b, seeded()), sign_flip_p])
def test_paired_figures_must_match(compare: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="same blocks, got 2 values and 3"):
        compare([1.0, 2.0], [1.0, 2.0, 3.0])


# Significance


@given(FIGURES)
def test_sign_flip_against_all_sign_patterns(pairs: list[tuple[float, float]]) -> None:
    a, b = columns(pairs)
    d = np.round(np.log(a) - np.log(b), 6)
    p = sign_flip_p(np.exp(d).tolist(), [1.0] * len(d))
    signs = (np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1) * 2 - 1
    sums = np.abs(signs @ d)
    assert p == pytest.approx(float((sums >= sums[-1] - 1e-9 * np.abs(d).sum()).mean()) if d.any() else 1.0)
    assert smallest_p(len(d)) <= p <= 1
    assert p == pytest.approx(sign_flip_p([1.0] * len(d), np.exp(d).tolist()))


def test_sign_flip_against_scipys_permutation_test() -> None:
    d = np.log(lognormal(seeded(6), 9)) + 0.1
    oracle = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=math.inf)
    assert sign_flip_p(np.exp(d).tolist(), [1.0] * 9) == pytest.approx(oracle.pvalue)


def test_sign_flip_reaches_its_smallest_p() -> None:
    for n in range(1, 21):
        assert sign_flip_p([1.1 + 0.01 * k for k in range(n)], [1.0] * n) == smallest_p(n) == 2 / 2**n


def test_sign_flip_above_twenty_blocks_goes_on_smoothly() -> None:
    rng = seeded(2)
    d = 0.03 + 0.1 * rng.standard_normal(24)
    signs = rng.choice([-1, 1], (200_000, 24))
    oracle = float((np.abs(signs @ d) >= abs(d.sum())).mean())
    assert sign_flip_p(np.exp(d).tolist(), [1.0] * 24) == pytest.approx(oracle, abs=0.01)


def test_equal_arms_are_not_different() -> None:
    for n in (5, 25):
        assert sign_flip_p([3.0] * n, [3.0] * n) == 1


@pytest.mark.parametrize("n", [8, 30])
def test_sign_flip_cries_wolf_as_often_as_alpha_says(n: int) -> None:
    rng, tables = seeded(11), 2000
    drift = np.linspace(10, 20, n)
    wolves = sum(
        sign_flip_p((drift * lognormal_spikes(rng, n)).tolist(), (drift * lognormal_spikes(rng, n)).tolist()) <= 0.05
        for _ in range(tables)
    )
    assert 0.035 <= wolves / tables <= 0.062


@pytest.mark.parametrize(
    ("alpha", "comparisons", "needed"), [(0.05, 1, 6), (0.05, 5, 8), (0.01, 1, 8), (0.5, 1, 2), (0.0625, 1, 5)]
)
def test_blocks_needed(alpha: float, comparisons: int, needed: int) -> None:
    assert blocks_needed(alpha, comparisons) == needed


@given(st.floats(1e-6, 0.5), st.integers(1, 200))
def test_blocks_needed_is_least(alpha: float, comparisons: int) -> None:
    n = blocks_needed(alpha, comparisons)

    def best(blocks: int) -> float:
        return holm([smallest_p(blocks)] + [1.0] * (comparisons - 1))[0]

    assert best(n) <= alpha
    assert n == 1 or best(n - 1) > alpha


@pytest.mark.parametrize(("alpha", "comparisons"), [(0.0, 1), (1.0, 1), (0.05, 0)])
def test_blocks_needed_rejects(alpha: float, comparisons: int) -> None:
    with pytest.raises(ValueError, match=f"got alpha {alpha}, {comparisons}"):
        blocks_needed(alpha, comparisons)


def test_smallest_p_needs_a_block() -> None:
    with pytest.raises(ValueError, match="at least one block, got 0"):
        smallest_p(0)


def test_holm_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_the_definition(p_values: list[float]) -> None:
    adjusted, ordered = holm(p_values), sorted(p_values)
    steps = [min(1.0, (len(ordered) - rank) * p) for rank, p in enumerate(ordered)]
    assert sorted(adjusted) == [max(steps[: rank + 1]) for rank in range(len(steps))]
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert [q for _, q in sorted(zip(p_values, adjusted, strict=True))] == sorted(adjusted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_procedure_rejects(p_values: list[float], alpha: float) -> None:
    m, rejected = len(p_values), 0
    for rank, p in enumerate(sorted(p_values)):
        if (m - rank) * p > alpha:
            break
        rejected += 1
    assert sum(q <= alpha for q in holm(p_values)) == rejected


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_rejects_what_is_no_p_value(bad: float) -> None:
    with pytest.raises(ValueError, match=r"p values lie in 0 … 1, got \[0.5, "):
        holm([0.5, bad])


def test_no_test_where_blocks_cannot_reach_it() -> None:
    up = [1.1, 1.2, 1.3, 1.1, 1.2, 1.3, 1.1]
    long, short = (up, [1.0] * 7), (up[:5], [1.0] * 5)
    assert paired_tests([short]) == [PairedTest(None, None, 5, 6)]
    assert paired_tests([long]) == [PairedTest(2 / 128, 2 / 128, 7, 6)]
    assert paired_tests([long, short]) == [PairedTest(2 / 128, 4 / 128, 7, 7), PairedTest(None, None, 5, 7)]
    assert [test.p for test in paired_tests([long] * 9)] == [None] * 9
    assert paired_tests([]) == []


@pytest.mark.parametrize("bad", [[], [0.0], [math.nan]])
def test_tests_need_figures(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values must be at least one figure, all positive and finite, got \["):
        sign_flip_p(bad, bad)


# Shares


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_agrees_with_scipy(counts: tuple[int, int], level: float) -> None:
    successes, n = counts
    oracle = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    low, high = wilson(successes, n, level)
    assert (low, high) == (pytest.approx(oracle.low, abs=1e-12), pytest.approx(oracle.high, abs=1e-12))
    assert 0 <= low <= successes / n <= high <= 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_rejects(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {n}"):
        wilson(successes, n)


# Noise floor and verdict


def test_floor_is_the_farthest_end_of_all_copies() -> None:
    none = Ratio(1.0, None, None, 2, "")
    assert noise_floor([between(0.97, 1.01)]) == Floor(1 / 0.97, 1)
    assert noise_floor([between(0.97, 1.01), none, between(0.99, 1.05)]) == Floor(1.05, 2)
    assert noise_floor([between(1.02, 1.04)]) == Floor(1.04, 1)
    assert noise_floor([]) is None
    assert noise_floor([none]) is None


FLOOR = Floor(1.05, 1)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (between(1.06, 1.2), ("slower", "faster", "more")),
        (between(0.8, 0.95), ("faster", "slower", "less")),
        (between(0.9, 1.2), ("within noise",) * 3),
        (between(1.04, 1.2), ("within noise",) * 3),
        (between(1.05, 1.2), ("within noise",) * 3),
        (between(0.8, 1 / 1.05), ("within noise",) * 3),
        (Ratio(5.0, None, None, 2, ""), ("not known",) * 3),
    ],
)
def test_verdict_words(ratio: Ratio, words: tuple[str, str, str]) -> None:
    assert tuple(verdict(ratio, FLOOR, scale) for scale in (Scale.TIME, Scale.SPEED, Scale.AMOUNT)) == words


def test_verdict_without_a_floor_is_held_against_one() -> None:
    assert verdict(between(1.001, 1.2), None) == "slower"
    assert verdict(between(0.7, 1.0), None) == "within noise"
    assert verdict(between(1.0, 1.0), None) == "within noise"


@given(INTERVALS, st.floats(1, 3), st.sampled_from(Scale))
def test_no_claim_that_touches_the_floor(ratio: Ratio, factor: float, scale: Scale) -> None:
    said = verdict(ratio, Floor(factor, 1), scale)
    assert ratio.low is not None
    assert ratio.high is not None
    if ratio.low <= factor and ratio.high >= 1 / factor:
        assert said == "within noise"
    if said != "within noise":
        assert ratio.low > 1 or ratio.high < 1
        larger = said == {Scale.TIME: "slower", Scale.SPEED: "faster", Scale.AMOUNT: "more"}[scale]
        assert larger is (ratio.low > factor)


@given(INTERVALS)
def test_a_copy_never_differs_by_its_own_floor(copy: Ratio) -> None:
    floor = noise_floor([copy])
    assert verdict(copy, floor) == "within noise"
    assert verdict(Ratio(copy.estimate, copy.low, copy.low, 5, ""), floor) == "within noise"


def test_arms_alike_are_within_noise_nearly_always() -> None:
    """A claim needs the A/A interval, too, to lie below the A/B one: far rarer than the level's 5 %."""
    rng, claims = seeded(8), 0
    for _ in range(500):
        block = 10 * lognormal(rng, 5)
        one, two, other = (block * normal(rng, 5) for _ in range(3))
        floor = noise_floor([paired_ratio(two, one, rng, resamples=200)])
        claims += verdict(paired_ratio(other, one, rng, resamples=200), floor) != "within noise"
    assert claims <= 5
