from __future__ import annotations

import json
import math
import random
import statistics

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate

from ganbench.quality import (
    Evaluator,
    NonFiniteSamples,
    PictureEvaluator,
    PointEvaluator,
    coverage,
    frechet_distance,
    recall,
)

Digits = tuple[Tensor, Tensor]
SPAN = (-1.0, 1.0)
CENTERS = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def judge(digits: Digits) -> PictureEvaluator:
    return PictureEvaluator(digits[0], SPAN, 400, seeded())


@pytest.fixture(scope="module")
def fresh(digits: Digits) -> tuple[Tensor, Tensor]:
    """Real digits that stand in for perfect fakes, with their classes; not the judge's halves as such."""
    order = torch.randperm(1797, generator=seeded(99))[:400]
    return digits[0][order], digits[1][order]


@pytest.fixture(params=["pictures", "pictures of 28x28", "points"])
def either(request: pytest.FixtureRequest, digits: Digits) -> tuple[Evaluator, Tensor]:
    """Each evaluator with fakes that it takes."""
    if request.param == "pictures":
        return PictureEvaluator(digits[0], SPAN, 100, seeded()), digits[0][:100].clone()
    if request.param == "pictures of 28x28":
        large = interpolate(digits[0][:200], size=(28, 28), mode="bilinear")
        return PictureEvaluator(large, SPAN, 100, seeded()), large[:100].clone()
    return PointEvaluator(CENTERS, 0.1, 100, seeded()), torch.randn(100, 2, generator=seeded(1))


class TestEveryEvaluator:
    """The contract of `Evaluator`."""

    def test_names(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        assert evaluator.samples == len(fake)
        assert evaluator.primary in evaluator.metrics
        for scores in (evaluator.score(fake), evaluator.floor):
            assert set(scores) <= set(evaluator.metrics)
            assert evaluator.primary in scores
            assert all(type(value) is float and math.isfinite(value) for value in scores.values())

    def test_facts_are_json(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, _ = either
        assert json.loads(json.dumps(evaluator.describe)) == evaluator.describe
        assert evaluator.describe["samples"] == evaluator.samples
        assert evaluator.describe["direction"] in ("minimize", "maximize")

    def test_score_is_a_function_of_the_fakes(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        kept, floor = fake.clone(), dict(evaluator.floor)
        assert evaluator.score(fake) == evaluator.score(fake)
        assert torch.equal(fake, kept)
        assert evaluator.floor == floor

    def test_order_of_fakes_does_not_matter(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        assert evaluator.score(fake.flip(0)) == pytest.approx(evaluator.score(fake))

    def test_any_float_dtype(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        expected = evaluator.score(fake)
        assert evaluator.score(fake.double()) == pytest.approx(expected)
        half = evaluator.score(fake.bfloat16())
        assert half[evaluator.primary] == pytest.approx(expected[evaluator.primary], rel=0.2, abs=0.02)

    def test_no_autograd(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        weight = torch.ones((), requires_grad=True)
        assert evaluator.score(fake * weight) == evaluator.score(fake)
        assert weight.grad is None
        assert torch.is_grad_enabled()
        with torch.inference_mode():
            assert evaluator.score(fake * 1) == evaluator.score(fake)

    @pytest.mark.cuda
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_fakes_on_another_device(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        assert evaluator.score(fake.cuda()) == evaluator.score(fake)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_non_finite_fakes(self, either: tuple[Evaluator, Tensor], value: float) -> None:
        evaluator, fake = either
        fake[3].view(-1)[0] = value
        with pytest.raises(NonFiniteSamples, match="samples must be finite; 1 of 100 hold NaN or infinity"):
            evaluator.score(fake)

    def test_another_number_or_shape_of_fakes(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        for wrong in (fake[:99], fake.flatten(), fake[..., :1]):
            with pytest.raises(ValueError, match=r"fakes must have the shape \(100, .*; given \(") as caught:
                evaluator.score(wrong)
            assert not isinstance(caught.value, NonFiniteSamples)

    def test_global_settings_do_not_matter(self, either: tuple[Evaluator, Tensor]) -> None:
        evaluator, fake = either
        expected = evaluator.score(fake)
        torch.set_default_dtype(torch.float16)
        try:
            with torch.autocast("cpu"), torch.device("meta"):
                assert evaluator.score(fake) == expected
        finally:
            torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", ["pictures", "points"])
def test_global_random_state_is_untouched(kind: str, digits: Digits) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    if kind == "pictures":
        evaluator: Evaluator = PictureEvaluator(digits[0], SPAN, 100, seeded())
        evaluator.score(digits[0][:100])
    else:
        evaluator = PointEvaluator(CENTERS, 0.1, 100, seeded())
        evaluator.score(CENTERS.repeat(25, 1))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert (np.random.get_state()[1] == before[2]).all()


class TestPictures:
    def test_metrics(self, judge: PictureEvaluator) -> None:
        assert judge.metrics == ("fd_pixels", "coverage", "recall")
        assert judge.primary == "fd_pixels"
        assert judge.describe["features"] == "pixels"
        assert judge.describe["neighbours"] == 5

    @pytest.mark.parametrize(("samples", "floor"), [(250, 0.256), (500, 0.131), (898, 0.074)])
    def test_floor_of_digits(self, digits: Digits, samples: int, floor: float) -> None:
        """The published figures fix the scale of pixels: on [-1, 1] each would be 4 times as large."""
        values = [PictureEvaluator(digits[0], SPAN, samples, seeded(s)).floor["fd_pixels"] for s in range(4)]
        assert statistics.mean(values) == pytest.approx(floor, rel=0.15)
        assert all(value == pytest.approx(floor, rel=0.4) for value in values)

    def test_floor_is_the_second_half_against_the_first(self, digits: Digits) -> None:
        evaluator = PictureEvaluator(digits[0], SPAN, 300, seeded(3))
        order = torch.randperm(1797, generator=seeded(3))
        first, second = ((digits[0][order[at : at + 300]].flatten(1) + 1) / 2 for at in (0, 300))
        assert evaluator.floor == pytest.approx(
            {
                "fd_pixels": frechet_distance(first, second),
                "coverage": coverage(first, second),
                "recall": recall(first, second),
            }
        )

    def test_value_range_does_not_change_scores(self, digits: Digits) -> None:
        """The same pictures in another unit are the same pictures."""
        expected = PictureEvaluator(digits[0], SPAN, 200, seeded())
        grey = (digits[0] + 1) * 127.5
        evaluator = PictureEvaluator(grey, (0.0, 255.0), 200, seeded())
        assert evaluator.floor["fd_pixels"] == pytest.approx(expected.floor["fd_pixels"], rel=1e-4)
        assert evaluator.score(grey[:200]) == pytest.approx(expected.score(digits[0][:200]), rel=1e-4, abs=0.02)

    def test_fakes_are_clamped_first(self, judge: PictureEvaluator, fresh: Digits) -> None:
        wild = fresh[0] + 50 * (fresh[0] == 1) - 50 * (fresh[0] == -1)
        assert judge.score(wild) == judge.score(fresh[0])

    def test_generator_decides_the_halves(self, digits: Digits) -> None:
        first, again, other = (PictureEvaluator(digits[0], SPAN, 100, seeded(s)).floor for s in (1, 1, 2))
        assert first == again
        assert first != other

    def test_noise(self, judge: PictureEvaluator, fresh: Digits) -> None:
        noise = torch.randn(fresh[0].shape, generator=seeded(5))
        scores = [judge.score(fresh[0] + level * noise) for level in (0.0, 0.2, 0.5, 1.0, 4.0)]
        assert_rising([s["fd_pixels"] for s in scores])
        assert_falling([s["coverage"] for s in scores])
        assert scores[-1]["coverage"] < 0.1

    def test_dropped_classes(self, judge: PictureEvaluator, fresh: Digits) -> None:
        scores = []
        for classes in (10, 7, 4, 1):
            kept = fresh[0][fresh[1] < classes]
            scores.append(judge.score(kept.repeat(math.ceil(400 / len(kept)), 1, 1, 1)[:400]))
        assert_rising([s["fd_pixels"] for s in scores])
        assert_falling([s["coverage"] for s in scores])
        assert_falling([s["recall"] for s in scores])

    def test_repeated_pictures(self, judge: PictureEvaluator, fresh: Digits) -> None:
        scores = [judge.score(fresh[0][:n].repeat(400 // n, 1, 1, 1)) for n in (400, 100, 25, 5, 1)]
        assert_rising([s["fd_pixels"] for s in scores])
        assert_falling([s["coverage"] for s in scores])
        assert scores[-1]["recall"] == 0.0

    def test_blur(self, judge: PictureEvaluator, fresh: Digits) -> None:
        """Density and precision rise under blur; these must not."""
        blurred = [fresh[0]]
        for size in (2, 4, 8):
            blurred.append(interpolate(avg_pool2d(fresh[0], size), scale_factor=size))
        scores = [judge.score(pictures) for pictures in blurred]
        assert_rising([s["fd_pixels"] for s in scores])
        assert_falling([s["coverage"] for s in scores])
        assert_falling([s["recall"] for s in scores])

    def test_large_pictures_are_pooled_and_neighbours_capped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ganbench.quality.evaluator.MOST_NEIGHBOURS", 50)
        real = torch.rand(140, 1, 28, 26, generator=seeded(8))
        evaluator = PictureEvaluator(real, (0.0, 1.0), 70, seeded())
        assert evaluator.metrics == ("fd_pooled_pixels", "coverage", "recall")
        assert evaluator.describe["feature_dims"] == 182
        assert evaluator.describe["neighbour_samples"] == 50
        fake = torch.rand(70, 1, 28, 26, generator=seeded(9))
        changed = torch.cat([fake[:50], torch.zeros(20, 1, 28, 26)])
        scores, others = evaluator.score(fake), evaluator.score(changed)
        assert scores["coverage"] > 0.3
        assert (others["coverage"], others["recall"]) == (scores["coverage"], scores["recall"])
        assert others["fd_pooled_pixels"] > scores["fd_pooled_pixels"]
        more = torch.cat([torch.zeros(50, 1, 28, 26), evaluator_reference(real)[:20]])
        assert evaluator.score(more)["coverage"] == 0.0  # the pictures that would cover lie behind the cap

    def test_too_few_real_pictures(self, digits: Digits) -> None:
        with pytest.raises(ValueError, match=r"2 x samples <= pictures; given samples 899 and 1797 .*at most 898"):
            PictureEvaluator(digits[0], SPAN, 899, seeded())

    @pytest.mark.parametrize(
        ("real", "span", "samples", "message"),
        [
            (torch.zeros(20, 64), SPAN, 6, r"shape \(M, C, H, W\); given \(20, 64\)"),
            (torch.zeros(20, 1, 8, 8), SPAN, 5, "samples must be at least 6.*given 5"),
            (torch.zeros(20, 1, 8, 8), (1.0, 1.0), 6, "low < high"),
            (torch.zeros(20, 1, 0, 8), SPAN, 6, "must have pixels"),
            (
                torch.full((20, 1, 8, 8), 255.0),
                SPAN,
                6,
                "in their value range .*given values from 255 to 255",
            ),
            (torch.full((20, 1, 8, 8), math.nan), SPAN, 6, "in their value range .*given values from nan"),
        ],
    )
    def test_bad_input(self, real: Tensor, span: tuple[float, float], samples: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            PictureEvaluator(real, span, samples, seeded())

    def test_a_range_left_by_rounding_is_let_pass(self) -> None:
        real = torch.rand(40, 1, 8, 8, generator=seeded(9)) * 1.005
        assert PictureEvaluator(real, (0.0, 1.0), 20, seeded()).floor["coverage"] > 0.5


class TestPoints:
    def test_metrics(self) -> None:
        evaluator = PointEvaluator(CENTERS, 0.1, 2500, seeded())
        assert evaluator.metrics == ("high_quality_share", "modes", "modes_20", "reverse_kl", "std_ratio")
        assert evaluator.primary == "high_quality_share"
        assert evaluator.describe["direction"] == "maximize"

    def test_floor_is_that_of_the_mixture(self) -> None:
        floor = PointEvaluator(CENTERS, 0.1, 2500, seeded()).floor
        assert floor["high_quality_share"] == pytest.approx(0.989, abs=0.01)
        assert floor["modes"] == floor["modes_20"] == 4
        assert floor["std_ratio"] == pytest.approx(0.974, abs=0.03)

    def test_collapse(self) -> None:
        evaluator = PointEvaluator(CENTERS, 0.1, 200, seeded())
        scores = evaluator.score(CENTERS[:1].repeat(200, 1))
        assert scores == {
            "high_quality_share": 1.0,
            "modes": 1.0,
            "modes_20": 1.0,
            "reverse_kl": pytest.approx(math.log(4)),
            "std_ratio": 0.0,
        }

    def test_centers_are_kept_as_they_were(self) -> None:
        centers = CENTERS.double()
        evaluator = PointEvaluator(centers, 0.1, 200, seeded())
        fake = CENTERS.repeat(50, 1)
        before = evaluator.score(fake)
        centers += 100
        assert evaluator.score(fake) == before

    def test_bad_input(self) -> None:
        with pytest.raises(ValueError, match="samples must be at least 1; given 0"):
            PointEvaluator(CENTERS, 0.1, 0, seeded())
        with pytest.raises(ValueError, match="std must be a positive"):
            PointEvaluator(CENTERS, -1.0, 10, seeded())


def evaluator_reference(real: Tensor) -> Tensor:
    """The first half of `real` as an evaluator with generator `seeded()` chooses it."""
    return real[torch.randperm(len(real), generator=seeded())[: len(real) // 2]]


def assert_rising(values: list[float]) -> None:
    assert values == sorted(values)
    assert values[-1] > values[0]


def assert_falling(values: list[float]) -> None:
    assert_rising(values[::-1])
