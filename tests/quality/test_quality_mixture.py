from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ganbench.quality import sample_mixture, score_mixture

ANGLES = torch.arange(8, dtype=torch.float64) * (2 * math.pi / 8)
RING = 2 * torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)
STD = 0.02


def draw(seed: int, count: int = 2500, centers: Tensor = RING, std: float = STD) -> Tensor:
    return sample_mixture(centers, std, count, torch.Generator().manual_seed(seed))


def test_real_samples_score_as_theory_says() -> None:
    scores = score_mixture(draw(0, 40_000), RING, STD)
    assert set(scores) == {"high_quality_share", "modes", "modes_20", "reverse_kl", "std_ratio"}
    assert scores["high_quality_share"] == pytest.approx(1 - math.exp(-4.5), abs=0.002)
    assert scores["modes"] == scores["modes_20"] == 8
    assert scores["reverse_kl"] == pytest.approx(0, abs=1e-3)
    cut = math.sqrt(1 - 4.5 * math.exp(-4.5) / (1 - math.exp(-4.5)))
    assert scores["std_ratio"] == pytest.approx(cut, abs=0.005)


def test_by_hand() -> None:
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0], [30.0, 0.0]])
    samples = torch.tensor([[0.0, 1.0], [0.0, -1.0], [2.9, 0.0], [13.1, 0.0], [10.0, 0.0], [25.0, 0.0]])
    scores = score_mixture(samples, centers, std=1.0)
    assert scores["high_quality_share"] == pytest.approx(4 / 6)
    assert scores["modes"] == 2
    assert scores["modes_20"] == 2
    assert scores["reverse_kl"] == pytest.approx(math.log(4) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    inner = samples[:3]
    squares = float((inner - inner.mean(0)).square().sum())
    assert scores["std_ratio"] == pytest.approx(math.sqrt(squares / (2 * 2)))


def test_the_edge_is_three_standard_deviations() -> None:
    centers = torch.zeros(1, 2)
    assert score_mixture(torch.tensor([[1.5, 0.0]]), centers, 0.5)["high_quality_share"] == 1
    assert score_mixture(torch.tensor([[1.5001, 0.0]]), centers, 0.5)["high_quality_share"] == 0


def test_without_high_quality_samples_nothing_is_made_up() -> None:
    scores = score_mixture(torch.full((10, 2), 99.0), RING, STD)
    assert scores == {"high_quality_share": 0.0, "modes": 0.0, "modes_20": 0.0}


def test_one_sample_a_mode_has_no_spread() -> None:
    scores = score_mixture(RING, RING, STD)
    assert "std_ratio" not in scores
    assert scores["reverse_kl"] == pytest.approx(0, abs=1e-12)
    assert scores["modes"] == 8


def test_dropped_modes() -> None:
    kls = []
    for kept in (8, 6, 4, 2, 1):
        scores = score_mixture(draw(1, centers=RING[:kept]), RING, STD)
        assert scores["modes"] == scores["modes_20"] == kept
        assert scores["high_quality_share"] > 0.97
        kls.append(scores["reverse_kl"])
        assert kls[-1] == pytest.approx(math.log(8 / kept), abs=0.01)
    assert kls == sorted(kls)


def test_noise_lowers_the_share() -> None:
    noise = torch.randn(2500, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    levels = (0.0, 0.02, 0.1, 0.5)
    shares = [score_mixture(draw(2) + n * noise, RING, STD)["high_quality_share"] for n in levels]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.1


def test_collapse_on_the_centres_shows_in_the_spread_only() -> None:
    scores = score_mixture(RING.repeat(100, 1), RING, STD)
    assert scores["high_quality_share"] == 1
    assert scores["modes_20"] == 8
    assert scores["std_ratio"] == pytest.approx(0, abs=1e-9)
    halved = score_mixture(draw(3, std=STD / 2), RING, STD)
    assert halved["std_ratio"] == pytest.approx(0.5, abs=0.02)
    beside = RING.repeat(100, 1) + STD  # off the centre, but still one point a mode
    assert score_mixture(beside, RING, STD)["std_ratio"] == pytest.approx(0, abs=1e-9)


def test_a_blob_is_told_from_a_mixture_by_share_and_modes_20() -> None:
    blob = 2 * torch.randn(2500, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    scores = score_mixture(blob, RING, STD)
    assert scores["modes"] >= 5
    assert scores["high_quality_share"] < 0.02
    assert scores["modes_20"] == 0


def test_modes_20_counts_against_all_samples() -> None:
    """2 modes, 100 samples: a fair share is 50, a fifth of it 10."""
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0]])
    for held, expected in ((9, 1), (10, 2)):
        samples = torch.cat([torch.zeros(100 - held, 2), centers[1].repeat(held, 1)])
        assert score_mixture(samples, centers, 1.0)["modes_20"] == expected
        assert score_mixture(samples, centers, 1.0)["modes"] == 2


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), count=st.integers(1, 60), spread=st.floats(0.1, 5))
def test_properties(seed: int, count: int, spread: float) -> None:
    """Within bounds; blind to the order of samples and modes, to a common shift and turn."""
    samples = draw(seed, count, std=spread * STD)
    scores = score_mixture(samples, RING, STD)
    assert 0 <= scores["high_quality_share"] <= 1
    assert 0 <= scores["modes_20"] <= scores["modes"] <= min(8, count)
    assert 0 <= scores.get("reverse_kl", 0) <= math.log(8) + 1e-12
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    assert score_mixture(samples[order], RING, STD) == pytest.approx(scores)
    assert score_mixture(samples, RING.flip(0), STD) == pytest.approx(scores)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    assert score_mixture(samples @ turn, RING @ turn, STD) == pytest.approx(scores)


def test_samples_come_from_the_given_generator_alone() -> None:
    before = torch.get_rng_state()
    assert torch.equal(draw(5), draw(5))
    assert not torch.equal(draw(5), draw(6))
    assert torch.equal(torch.get_rng_state(), before)
    assert draw(5, 7).shape == (7, 2)
    assert draw(5, 7).dtype == torch.float64


@pytest.mark.parametrize(
    ("samples", "centers", "std", "message"),
    [
        (
            torch.zeros(3, 3),
            RING,
            STD,
            r"samples must be points of the plane, \(N, 2\); given shape \(3, 3\)",
        ),
        (torch.zeros(3, 2), RING[0], STD, r"centers must be a matrix .* given shape \(2,\)"),
        (torch.zeros(0, 2), RING, STD, "samples must have at least 1 rows; given 0"),
        (torch.zeros(3, 2), RING, 0.0, "std must be a positive, finite number; given 0.0"),
        (torch.zeros(3, 2), RING, math.nan, "std must be a positive, finite number; given nan"),
        (torch.full((3, 2), math.nan), RING, STD, "samples must be finite; 3 of 3 rows"),
    ],
)
def test_bad_input_says_rule_and_given(samples: Tensor, centers: Tensor, std: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_mixture(samples, centers, std)


def test_no_samples_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="count must be at least 1; given 0"):
        draw(0, 0)
