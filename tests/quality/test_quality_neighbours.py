from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ganbench.quality import Neighbourhoods, coverage, recall


def cloud(seed: int, rows: int, columns: int = 3) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive(real: Tensor, fake: Tensor, k: int) -> tuple[float, float]:
    """Coverage and recall straight from the definitions, in double loops."""
    a, b = real.numpy(), fake.numpy()

    def radius(points: np.ndarray, i: int) -> float:
        others = [float(np.linalg.norm(points[i] - points[j])) for j in range(len(points)) if j != i]
        return sorted(others)[k - 1]

    covered = 0
    for i in range(len(a)):
        edge = radius(a, i)
        covered += any(np.linalg.norm(a[i] - point) < edge for point in b)
    edges = [radius(b, j) for j in range(len(b))]
    recalled = 0
    for point in a:
        recalled += any(np.linalg.norm(point - b[j]) < edges[j] for j in range(len(b)))
    return covered / len(a), recalled / len(a)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(("rows", "fakes", "shift"), [(40, 40, 0.0), (30, 55, 1.0), (50, 20, 0.5)])
def test_agrees_with_the_definitions(k: int, rows: int, fakes: int, shift: float) -> None:
    real, fake = cloud(1, rows), cloud(2, fakes) + shift
    assert (coverage(real, fake, k), recall(real, fake, k)) == naive(real, fake, k)


def test_agrees_with_prdc_over_several_blocks() -> None:
    prdc = pytest.importorskip("prdc", reason="the authors' code, a second oracle")
    real, fake = cloud(3, 700, 16), 0.9 * cloud(4, 600, 16) + 0.2
    with contextlib.redirect_stdout(io.StringIO()):
        expected = prdc.compute_prdc(real.numpy(), fake.numpy(), nearest_k=5)
    assert coverage(real, fake) == pytest.approx(expected["coverage"])
    assert recall(real, fake) == pytest.approx(expected["recall"])
    assert 0.1 < coverage(real, fake) < 1  # neither end of the scale, where anything agrees


def test_which_side_is_which() -> None:
    """Fakes from half the data reach half of it; a ball too large fools recall and not coverage."""
    real = torch.cat([cloud(5, 100), cloud(6, 100) + 50])
    half = cloud(7, 200)
    assert coverage(real, half) <= 0.5
    assert recall(real, half) <= 0.5
    # One fake far away has a ball that swallows the data: recall is fooled by it, coverage is not.
    outlier = torch.cat([cloud(8, 20) + 500, cloud(8, 5)])
    assert recall(real, outlier, k=21) == 1.0
    assert coverage(real, outlier) < 0.5


def test_a_perfect_copy_scores_one() -> None:
    real = cloud(9, 300)
    assert coverage(real, real.clone()) == 1.0
    assert recall(real, real.clone()) == 1.0


def test_mode_collapse_lowers_both() -> None:
    """The guard on orientation: fewer of ten modes, lower coverage and recall; one point, next to nothing."""
    centers = 20 * cloud(10, 10)
    real = (centers[:, None] + cloud(11, 500).view(10, 50, 3)).flatten(0, 1)
    fresh = (centers[:, None] + cloud(12, 500).view(10, 50, 3)).flatten(0, 1)
    scores = []
    for modes in (10, 6, 3, 1):
        fake = fresh[: 50 * modes].repeat_interleave(10, dim=0)[::modes][:500]
        fake = fake + 0.05 * cloud(13, 500)
        scores.append((coverage(real, fake), recall(real, fake)))
    assert scores == sorted(scores, reverse=True)
    assert scores[0][0] > 0.9
    assert scores[-1][0] <= 0.1
    assert scores[-1][1] <= 0.1
    point = fresh[:1].repeat(500, 1)
    assert recall(real, point) == 0.0
    assert coverage(real, point) <= 0.05


def test_repeated_samples_lower_both() -> None:
    real, fresh = cloud(14, 400, 8), cloud(15, 400, 8)
    values = [(coverage(real, fresh[:n].repeat(400 // n, 1)), n) for n in (400, 100, 25, 5)]
    assert values == sorted(values, reverse=True)
    assert recall(real, fresh) > 0.5
    assert recall(real, fresh[:50].repeat(8, 1)) == 0.0  # each copy's five nearest are copies: no ball at all


def test_noise_lowers_coverage() -> None:
    real, fresh, noise = cloud(16, 400, 8), cloud(17, 400, 8), cloud(18, 400, 8)
    values = [coverage(real, fresh + level * noise) for level in (0.0, 1.0, 3.0, 10.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.2 < 0.8 < values[0]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), rows=st.integers(6, 40), k=st.integers(1, 5), power=st.integers(-8, 8))
def test_properties(seed: int, rows: int, k: int, power: int) -> None:
    """Shares; blind to order and to the unit (by a power of two: exactly); never fall as k grows."""
    real, fake = cloud(seed, rows), cloud(seed + 1, rows) + 0.5
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    for metric in (coverage, recall):
        value = metric(real, fake, k)
        assert 0 <= value <= 1
        assert metric(real[order], fake, k) == value
        assert metric(real, fake[order], k) == value
        assert metric(2.0**power * real, 2.0**power * fake, k) == value
        if k > 1:
            assert metric(real, fake, k - 1) <= value


def test_copies_are_exactly_nothing_apart() -> None:
    """Products leave 1e-8 of a distance where there is none; a ball of copies must stay empty."""
    points = cloud(19, 1, 200).repeat(8, 1)
    balls = Neighbourhoods.of(torch.cat([cloud(20, 30, 200), points + 0.1]), k=5)
    assert (balls.squared_radii[:30] > 0).all()
    assert balls.squared_radii[30:].tolist() == [0.0] * 8


def test_balls_are_open() -> None:
    """A point at exactly the radius is outside, as in prdc; grey values on a grid make such ties common."""
    pair, edge = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0]])
    assert coverage(pair, edge, k=1) == 0.0
    assert coverage(pair, edge - 0.01, k=1) == 0.5
    assert recall(edge, pair, k=1) == 0.0
    assert recall(edge - 0.01, pair, k=1) == 1.0


def test_a_common_offset_changes_nothing() -> None:
    real, fake = cloud(21, 100), cloud(22, 100)
    assert coverage(real + 1e6, fake + 1e6) == coverage(real, fake)
    assert recall(real + 1e6, fake + 1e6) == recall(real, fake)


def test_balls_once_give_the_same_as_points_each_time() -> None:
    real, fake = cloud(23, 300), cloud(24, 280)
    assert Neighbourhoods.of(real).share_of_balls_reached(fake) == coverage(real, fake)
    assert Neighbourhoods.of(fake).share_of_points_held(real) == recall(real, fake)
    assert recall(real.float().requires_grad_(), fake.float()) == pytest.approx(recall(real, fake), abs=0.01)


@pytest.mark.parametrize(
    ("real", "fake", "k", "message"),
    [
        (cloud(0, 5), cloud(0, 9), 5, "real must have at least 6 rows; given 5"),
        (cloud(0, 9), cloud(0, 9), 0, "k must be at least 1; given 0"),
        (cloud(0, 9), cloud(0, 9, 2), 5, "same number of features; given 3 and 2"),
        (cloud(0, 9), torch.zeros(9), 5, r"fake must be a matrix .* given shape \(9,\)"),
        (cloud(0, 9), torch.zeros(0, 3), 5, "fake must have at least 1 rows; given 0"),
        (cloud(0, 9), torch.full((9, 3), torch.inf), 5, "fake must be finite; 9 of 9 rows"),
    ],
)
def test_bad_input_says_rule_and_given(real: Tensor, fake: Tensor, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coverage(real, fake, k)


def test_recall_needs_more_fakes_than_neighbours() -> None:
    with pytest.raises(ValueError, match="fake must have at least 6 rows; given 5"):
        recall(cloud(0, 9), cloud(0, 5))
