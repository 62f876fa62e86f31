"""Quality of vectors, sequences and points of unknown origin."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ganbench.quality import CoordinateEvaluator, NonFiniteSamples, frechet_distance


def draw(count: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def judge(real: Tensor, samples: int = 200) -> CoordinateEvaluator:
    return CoordinateEvaluator(real, samples, torch.Generator().manual_seed(5))


def test_the_distance_is_frechets_on_standardised_coordinates() -> None:
    real = draw(400, 3) * torch.tensor([1.0, 50.0, 0.01]) + torch.tensor([0.0, 7.0, -3.0])
    fake = real.flip(1)[:200]
    evaluator = judge(real)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(5))
    reference = real[order[:200]].double()
    mean, deviation = reference.mean(0), reference.std(0)
    wanted = frechet_distance((reference - mean) / deviation, (fake.double() - mean) / deviation)
    assert evaluator.score(fake)["fd_coordinates"] == pytest.approx(wanted, rel=1e-9)
    assert evaluator.primary == "fd_coordinates"
    assert set(evaluator.score(fake)) == set(evaluator.metrics) == set(evaluator.floor)


def test_a_coordinates_unit_does_not_matter() -> None:
    real, fake, scale = draw(400, 2), draw(200, 2, seed=1) + 0.3, torch.tensor([1000.0, 0.1])
    one, other = judge(real).score(fake), judge(real * scale).score(fake * scale)
    assert one["fd_coordinates"] == pytest.approx(other["fd_coordinates"], rel=1e-5)


@pytest.mark.parametrize("shape", [(2,), (5, 7), (20, 20)])
def test_it_moves_the_right_way(shape: tuple[int, ...]) -> None:
    evaluator = judge(draw(400, *shape))
    values = [evaluator.score(draw(200, *shape, seed=1) + shift)[evaluator.primary] for shift in (0.0, 0.3, 1.0)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(evaluator.floor[evaluator.primary], rel=0.5)
    assert values[2] > 2 * values[0]
    collapsed = evaluator.score(draw(1, *shape, seed=2).expand(200, *shape))
    assert collapsed["recall"] == 0
    assert collapsed[evaluator.primary] > values[0]


def test_many_numbers_are_projected_the_same_way_every_time() -> None:
    real, fake = draw(400, 20, 20), draw(200, 20, 20, seed=1)
    evaluator = judge(real)
    assert evaluator.primary == "fd_projected_coordinates"
    assert (evaluator.describe["dims"], evaluator.describe["feature_dims"]) == (400, 256)
    torch.manual_seed(1)
    assert judge(real).score(fake) == evaluator.score(fake)


def test_a_coordinate_that_never_changes_is_no_division_by_zero() -> None:
    real = draw(400, 3)
    real[:, 1] = 4.0
    evaluator = judge(real)
    fake = real[:200].clone()
    fake[:, 1] += 0.5
    assert evaluator.floor["fd_coordinates"] < evaluator.score(fake)["fd_coordinates"] < 1


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    judge(draw(400, 20, 20)).score(draw(200, 20, 20))
    assert torch.equal(before, torch.get_rng_state())


def test_what_cannot_be_judged_is_refused() -> None:
    evaluator = judge(draw(400, 2))
    with pytest.raises(ValueError, match=r"\(200, 2\)"):
        evaluator.score(draw(200, 3))
    with pytest.raises(NonFiniteSamples, match="1 of 200"):
        evaluator.score(torch.cat([draw(199, 2), torch.full((1, 2), torch.nan)]))
    for samples in (5, 201):
        with pytest.raises(ValueError, match=f"given {samples}"):
            judge(draw(400, 2), samples)
