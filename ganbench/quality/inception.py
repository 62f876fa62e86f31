"""The FID itself: Fréchet distance on Inception features, by torch-fidelity and with weights that the user has.

Heusel et al. 2017, arXiv:1706.08500, on the 2048 features of the network converted from TensorFlow's of 2015-12-05, to
which pictures are brought as uint8 and enlarged as TensorFlow 1 does. ganbench ships neither package nor weights: the
extra `fid` brings the package, the path to the weights stands in the experiment (`evaluate.fid`).
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ganbench.errors import DatasetError
from ganbench.quality.evaluator import Evaluator
from ganbench.quality.features import to_unit_scale
from ganbench.quality.frechet import Moments, frechet_between

METRIC = "fid"
DIMS = 2048
# Inception at 299 px takes some 100 MB for so many.
_BLOCK = 32


class WithInception:
    """Another evaluator of pictures with the FID beside its scores; its primary metric stays the primary one.

    Making one checks package and weights only: the real pictures, at some 0.2 s each on one core, go through the
    network when they are first asked for.
    """

    def __init__(self, inner: Evaluator, real: Tensor, value_range: tuple[float, float], weights: Path) -> None:
        """Load the network; real pictures (2 N, C, H, W) with C 1 or 3, N the inner evaluator's samples.

        Raises:
            DatasetError: torch-fidelity is not installed, the weights cannot be used, or it is pictures of neither
                one nor three channels.
        """
        if real.dim() != 4 or real.shape[1] not in (1, 3):
            raise DatasetError(
                f"evaluate.fid judges pictures of one or three channels; items of shape {tuple(real.shape[1:])} given"
            )
        self._inner, self._range = inner, value_range
        self._network, digest = load_inception(weights)
        self.samples: int = inner.samples
        self.primary: str = inner.primary
        self.metrics: tuple[str, ...] = (*inner.metrics, METRIC)
        self._real = real
        self.describe: dict[str, str | int | float] = {**inner.describe, "inception_weights_sha256": digest}

    @cached_property
    def floor(self) -> dict[str, float]:
        """The inner evaluator's floor, and the FID of one half of the real pictures against the other."""
        return {**self._inner.floor, METRIC: self._fid(self._real[self.samples : 2 * self.samples])}

    @cached_property
    def _moments(self) -> Moments:
        return Moments.of(self._features(self._real[: self.samples]))

    def _fid(self, pictures: Tensor) -> float:
        return frechet_between(self._moments, Moments.of(self._features(pictures)))

    def score(self, fake: Tensor) -> dict[str, float]:
        """The inner evaluator's scores and `fid`. Errors are those of the inner one."""
        scores = self._inner.score(fake)
        return {**scores, METRIC: self._fid(fake)}

    @torch.no_grad()
    def _features(self, pictures: Tensor) -> Tensor:
        """(N, 2048) float64."""
        made = []
        with torch.autocast("cpu", enabled=False):
            for block in torch.split(pictures.detach().cpu(), _BLOCK):
                unit = to_unit_scale(block.float(), self._range)
                made.append(self._network(as_bytes(unit))[0].double())
        return torch.cat(made)


def as_bytes(unit: Tensor) -> Tensor:
    """Pictures (N, 1 or 3, H, W) in [0, 1] as uint8 (N, 3, H, W), rounded."""
    rounded = (unit * 255).round().to(torch.uint8)
    return rounded.expand(-1, 3, -1, -1).contiguous()


def load_inception(weights: Path) -> tuple[Any, str]:
    """torch-fidelity's network with these weights, and the SHA-256 of their file.

    Raises:
        DatasetError: the package is not installed, or the file cannot be used.
    """
    if not weights.is_file():
        raise DatasetError(
            f"evaluate.fid names a file of Inception weights; there is no '{weights}'. torch-fidelity's releases have "
            "weights-inception-2015-12-05-6726825d.pth"
        )
    try:
        from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
    except ImportError:
        raise DatasetError("evaluate.fid needs torch-fidelity: pip install 'ganbench[fid]'") from None
    try:
        # torch-fidelity itself reads the file as any pickle: nothing that is more than tensors comes that far.
        torch.load(weights, map_location="cpu", weights_only=True)
        with torch.random.fork_rng(devices=[]):  # its layers draw weights before they are given others
            network = FeatureExtractorInceptionV3("inception", [str(DIMS)], feature_extractor_weights_path=str(weights))
    except Exception as error:  # noqa: BLE001 - whatever a wrong file makes of it
        first = (str(error).splitlines() or [""])[0]
        raise DatasetError(f"evaluate.fid: '{weights}' holds no Inception weights: {first}") from None
    return network, hashlib.sha256(weights.read_bytes()).hexdigest()
