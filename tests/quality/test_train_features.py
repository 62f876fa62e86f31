"""The script that made the shipped weights: its data, whichever way they come, and its training on a few pictures."""

from __future__ import annotations

import gzip
import importlib.util
import json
import struct
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "train_features.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("train_features", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def write_idx(path: Path, values: np.ndarray) -> None:
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    content = header + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_digits_are_the_same_from_either_source(script: ModuleType, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    pictures, classes = draw.integers(0, 256, (60, 28, 28)), draw.permutation(np.repeat(np.arange(10), 6))
    for folder, suffix in (("idx", ""), ("gz", ".gz")):
        (tmp_path / folder).mkdir()
        write_idx(tmp_path / folder / f"train-images-idx3-ubyte{suffix}", pictures)
        write_idx(tmp_path / folder / f"train-labels-idx1-ubyte{suffix}", classes)
    package = tmp_path / "package" / "src" / "digits"
    package.mkdir(parents=True)
    for n in range(10):
        rounded = [round(value / 255, 3) for value in pictures[classes == n].ravel().tolist()]
        (package / f"{n}.json").write_text(json.dumps({"data": rounded}))
    first, *others = (script.digits(tmp_path / folder) for folder in ("idx", "gz", "package"))
    assert first[0].dtype == torch.uint8
    assert sorted(map(bytes, first[0].numpy())) == sorted(map(bytes, pictures.astype(np.uint8)))
    for other in others:
        assert torch.equal(other[0], first[0])
        assert torch.equal(other[1], first[1])


def test_a_missing_file_is_told(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no train-images-idx3-ubyte below"):
        script.fashion(tmp_path, "train")


def test_training_learns_and_repeats_itself(script: ModuleType) -> None:
    """Flat pictures of 20 greys, which are easily told apart."""
    draw = torch.Generator().manual_seed(0)
    classes = torch.arange(20).repeat(64)
    noise = torch.randint(0, 4, (len(classes), 28, 28), generator=draw)
    pictures = (classes[:, None, None] * 12 + noise).to(torch.uint8)
    made = []
    for _ in range(2):
        torch.manual_seed(1)
        layers, naming = script.train(pictures, classes)
        made.append((layers, naming))
    layers, naming = made[0]
    assert script.to_bytes(layers) == script.to_bytes(made[1][0])
    before = script.accuracy(layers, naming, pictures, classes)
    assert before > 3 / 20
    layers = script.standardised(layers, naming, pictures)
    features = script.forward(layers, script.as_floats(pictures))
    assert torch.allclose(features.std(dim=0), torch.ones(64), rtol=1e-3)
    assert script.accuracy(layers, naming, pictures, classes) == pytest.approx(before, abs=0.02)
