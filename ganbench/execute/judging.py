"""Which evaluator judges a dataset's fakes, and how they are drawn.

torch's floor is imported inside the functions: the parent imports this package too, and never loads torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ganbench.errors import DatasetError
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed

if TYPE_CHECKING:
    from torch import Tensor

    from ganbench.gan.data import Data
    from ganbench.quality import Evaluator

GRID = 64
# Neighbourhoods of five need six points.
LEAST_SAMPLES = 6
# Real points drawn among the fakes where no mixture's centers are known.
_SHOWN = 100


def evaluator_for(spec: RunSpec, data: Data) -> Evaluator:
    """The judge of samples for this dataset; the same for every seed, so that floors and references agree.

    Raises:
        DatasetError: the dataset holds too few items for the samples asked for, or the FID cannot be measured.
    """
    import torch

    from ganbench.quality import CoordinateEvaluator, PictureEvaluator, PointEvaluator

    generator = torch.Generator().manual_seed(derive_seed("evaluation reference", spec.dataset.name))
    if spec.evaluate.fid is not None and data.value_range is None:
        raise DatasetError(f"evaluate.fid judges pictures; {data.name} has items of shape {tuple(data.shape)}")
    if data.mixture is not None:
        return PointEvaluator(data.mixture.centers, data.mixture.std, spec.evaluate_samples, generator)
    kind = "pictures" if data.value_range is not None else "items"
    samples = min(spec.evaluate_samples, data.count // 2) if spec.evaluate.samples is None else spec.evaluate_samples
    if 2 * samples > data.count:
        raise DatasetError(
            f"evaluate.samples is at most half of the dataset, for a floor from disjoint halves: {data.name} has "
            f"{data.count} {kind}, {samples} samples were asked for; choose at most {data.count // 2}"
        )
    if samples < LEAST_SAMPLES:
        raise DatasetError(
            f"{data.name} has {data.count} {kind}; judging samples takes at least {2 * LEAST_SAMPLES}, "
            f"half of them for the floor"
        )
    # Only what is needed is turned into floats: a large dataset stays in bytes.
    rows = torch.randperm(data.count, generator=generator)[: 2 * samples]
    if data.value_range is None:
        judge: Evaluator = CoordinateEvaluator(data.floats(rows), samples, generator)
    else:
        judge = PictureEvaluator(data.floats(rows), data.value_range, samples, generator)
    if spec.evaluate.fid is None:
        return judge
    from ganbench.quality.inception import WithInception

    return WithInception(judge, data.floats(rows), data.value_range or (0.0, 1.0), Path(spec.evaluate.fid))


def drawn(fakes: Tensor, data: Data) -> bytes:
    """A PNG of fakes: a grid of pictures; points of the plane with their modes' centers, or with some real points;
    anything else as one picture with a row an item."""
    from ganbench.quality import picture_of

    if data.mixture is not None:
        return picture_of(fakes, None, data.mixture.centers)
    if data.value_range is not None:
        return picture_of(fakes[:GRID], data.value_range)
    if data.shape == (2,):
        return picture_of(fakes, None, data.items[:_SHOWN].cpu())
    low, high = float(data.items.min()), float(data.items.max())
    rows = fakes[:GRID].flatten(1)[None, None]
    return picture_of(rows, (low, high if high > low else low + 1.0))
