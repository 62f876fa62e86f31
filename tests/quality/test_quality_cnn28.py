"""The features of 28x28 grey pictures: which weights they are, and that they see what makes pictures worse."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate, pad

from ganbench.errors import UsageError
from ganbench.quality import PictureEvaluator, features_for
from ganbench.quality.cnn28 import SHA256, WEIGHT_SHAPES, WEIGHTS, forward, read_weights, to_bytes
from ganbench.record.metrics import metric

FASHION = Path("/usr/share/datasets/fashion-mnist")
SAMPLES = 300
ROOT = Path(__file__).resolve().parents[2]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class TestWeights:
    def test_the_shipped_file_is_the_one_that_the_code_names(self) -> None:
        stored = WEIGHTS.read_bytes()
        assert hashlib.sha256(stored).hexdigest() == SHA256
        assert len(stored) == 110_656
        layers = read_weights(WEIGHTS, SHA256)
        assert tuple(tuple(weight.shape) for weight, _ in layers) == WEIGHT_SHAPES
        assert all(bool(part.isfinite().all()) and part.dtype == torch.float64 for layer in layers for part in layer)
        assert to_bytes(layers) == stored

    def test_it_goes_into_the_wheel(self) -> None:
        """The build leaves out what git ignores, and nothing else of the package."""
        ignored = (ROOT / ".gitignore").read_text().split()
        assert not any(pattern.strip("/*") in WEIGHTS.relative_to(ROOT).as_posix() for pattern in ignored)

    @pytest.mark.parametrize("damage", ["a bit", "cut off", "empty", "longer"])
    def test_a_damaged_file_is_refused(self, damage: str, tmp_path: Path) -> None:
        stored = bytearray(WEIGHTS.read_bytes())
        stored[1000] ^= 1
        content = {"a bit": stored, "cut off": stored[:-2], "empty": b"", "longer": stored + b"\0\0"}[damage]
        file = tmp_path / "cnn28.fp16"
        file.write_bytes(content)
        with pytest.raises(UsageError, match=r"weights of cnn28 must have the SHA-256 f4aac.*damaged, install") as told:
            read_weights(file, SHA256)
        assert str(file) in str(told.value)

    def test_a_missing_file_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"cannot be read: '.*none': No such file .*install ganbench again"):
            read_weights(tmp_path / "none", SHA256)

    def test_other_layers_are_not_written(self) -> None:
        layers = read_weights(WEIGHTS, SHA256)
        with pytest.raises(ValueError, match="the layers must have the shapes"):
            to_bytes(layers[:-1])

    def test_reading_them_depends_on_no_global_setting(self) -> None:
        expected = read_weights(WEIGHTS, SHA256)
        before = torch.get_rng_state()
        torch.set_default_dtype(torch.float16)
        try:
            with torch.device("meta"), torch.autocast("cpu"):
                again = read_weights(WEIGHTS, SHA256)
        finally:
            torch.set_default_dtype(torch.float32)
        assert torch.equal(torch.get_rng_state(), before)
        for (weight, bias), (other, offset) in zip(expected, again, strict=True):
            assert torch.equal(weight, other)
            assert torch.equal(bias, offset)


class TestFeatures:
    def test_the_network_is_the_one_that_is_described(self) -> None:
        layers = read_weights(WEIGHTS, SHA256)
        modules: list[nn.Module] = []
        for channels, (weight, bias) in zip((1, 16, 32), layers[:3], strict=True):
            size = weight.shape[-1]
            modules += [nn.Conv2d(channels, len(bias), size, stride=2, padding=size // 2), nn.ReLU()]
        modules += [nn.Flatten(), nn.Linear(512, 64)]
        network = nn.Sequential(*modules).double()
        network.load_state_dict(
            dict(zip(network.state_dict(), (part for layer in layers for part in layer), strict=True))
        )
        pictures = torch.rand(600, 1, 28, 28, generator=seeded(), dtype=torch.float64)
        expected = network(pictures).detach()
        assert torch.allclose(forward(layers, pictures), expected)
        found = features_for((1, 28, 28)).extract(pictures)  # more than one block, in float32
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_records_say_which_weights(self) -> None:
        real = torch.rand(40, 1, 28, 28, generator=seeded())
        evaluator = PictureEvaluator(real, (0.0, 1.0), 20, seeded())
        assert evaluator.primary == "fd_cnn28"
        assert evaluator.describe["features"] == "cnn28"
        assert evaluator.describe["weights_sha256"] == SHA256
        assert evaluator.describe["feature_dims"] == 64
        row = metric("quality/fd_cnn28")
        assert row.direction == -1
        assert "28×28" in row.title

    def test_pictures_of_other_sizes_have_no_weights(self) -> None:
        real = torch.rand(40, 1, 8, 8, generator=seeded())
        assert "weights_sha256" not in PictureEvaluator(real, (0.0, 1.0), 20, seeded()).describe

    def test_features_tell_classes_apart_that_pixels_confuse(self, digits: tuple[Tensor, Tensor]) -> None:
        """Of the nearest other digit's class: right nearly always, though trained on other people's digits."""
        pictures = (interpolate(digits[0][:500], size=(28, 28), mode="bilinear").double() + 1) / 2
        features = features_for((1, 28, 28)).extract(pictures)
        apart = torch.cdist(features, features).fill_diagonal_(math.inf)
        right = digits[1][:500][apart.argmin(dim=1)] == digits[1][:500]
        assert float(right.double().mean()) > 0.93


Pictures = tuple[PictureEvaluator, Tensor, Tensor]


def _read(name: str) -> Tensor:
    content = gzip.decompress((FASHION / name).read_bytes())
    sizes = np.frombuffer(content, ">i4", content[3], 4)
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes).copy())


@pytest.fixture(scope="module", params=["digits", "fashion"])
def judged(request: pytest.FixtureRequest, digits: tuple[Tensor, Tensor]) -> Pictures:
    """A judge, and real pictures in [0, 1] that are neither its reference nor its floor, with their classes."""
    if request.param == "fashion":
        if not FASHION.is_dir():
            pytest.skip("needs Debian's package dataset-fashion-mnist")
        # Never seen while the features were trained.
        pictures, classes = (
            _read("t10k-images-idx3-ubyte.gz")[:, None].float() / 255,
            _read("t10k-labels-idx1-ubyte.gz"),
        )
    else:
        pictures = (interpolate(digits[0], size=(28, 28), mode="bilinear").clamp(-1, 1) + 1) / 2
        classes = digits[1]
    order = torch.randperm(len(pictures), generator=seeded(1))[: 3 * SAMPLES]
    judge = PictureEvaluator(pictures[order[: 2 * SAMPLES]], (0.0, 1.0), SAMPLES, seeded())
    rest = order[2 * SAMPLES :]
    return judge, pictures[rest], classes[rest]


def _filled(pictures: Tensor) -> Tensor:
    return pictures.repeat(math.ceil(SAMPLES / len(pictures)), 1, 1, 1)[:SAMPLES]


def _blurred(pictures: Tensor, sigma: float) -> Tensor:
    if not sigma:
        return pictures
    steps = torch.arange(-9.0, 10.0)
    kernel = torch.exp(-steps.square() / (2 * sigma**2))
    kernel /= kernel.sum()
    rows = conv2d(pad(pictures, (9, 9, 0, 0)), kernel.view(1, 1, 1, 19))
    return conv2d(pad(rows, (0, 0, 9, 9)), kernel.view(1, 1, 19, 1))


def _noisy(pictures: Tensor, level: float) -> Tensor:
    return pictures + level * torch.randn(pictures.shape, generator=seeded(5))


def _with_junk(pictures: Tensor, share: float) -> Tensor:
    count = round(share * len(pictures))
    return torch.cat([torch.rand(count, *pictures.shape[1:], generator=seeded(6)), pictures[count:]])


def _flipped(pictures: Tensor, share: float) -> Tensor:
    hit = torch.rand(pictures.shape, generator=seeded(7)) < share
    return torch.where(hit, (torch.rand(pictures.shape, generator=seeded(8)) < 0.5).float(), pictures)


WORSE: dict[str, tuple[Callable[[Tensor, float], Tensor], tuple[float, ...]]] = {
    "noise": (_noisy, (0, 0.05, 0.1, 0.2, 0.4, 0.8)),
    "blur": (_blurred, (0, 0.5, 1, 1.5, 2, 3)),
    "junk": (_with_junk, (0, 0.05, 0.1, 0.2, 0.5, 1)),
    "salt and pepper": (_flipped, (0, 0.05, 0.1, 0.2, 0.4, 0.6)),
    "repeated pictures": (lambda pictures, n: _filled(pictures[: int(n)]), (SAMPLES, 100, 25, 5, 1)),
}


@pytest.mark.parametrize("how", WORSE)
def test_worse_pictures_score_worse(how: str, judged: Pictures) -> None:
    judge, pictures, _ = judged
    worsen, levels = WORSE[how]
    scores = [judge.score(worsen(pictures, level))["fd_cnn28"] for level in levels]
    assert_strictly_rising(scores)
    assert scores[-1] > 10 * judge.floor["fd_cnn28"]


def test_dropped_classes_score_worse(judged: Pictures) -> None:
    judge, pictures, classes = judged
    scores = [judge.score(_filled(pictures[classes < kept]))["fd_cnn28"] for kept in (10, 7, 4, 1)]
    assert_strictly_rising(scores)


def test_real_pictures_score_like_the_floor(judged: Pictures) -> None:
    judge, pictures, _ = judged
    assert judge.score(pictures)["fd_cnn28"] == pytest.approx(judge.floor["fd_cnn28"], rel=0.5)


def assert_strictly_rising(values: list[float]) -> None:
    assert all(first < second for first, second in itertools.pairwise(values)), values
