"""Tiny datasets in the file formats that torchvision's own classes read."""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

FOLDERS = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "kmnist": "KMNIST"}


def idx(values: Bytes) -> bytes:
    """The IDX file of a uint8 array."""
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def grey() -> Bytes:
    """(6, 28, 28), with 0 and 255 in it."""
    pictures = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    pictures[0, 0, :2] = 0, 255
    return pictures


@pytest.fixture
def colour() -> Bytes:
    """(10, 3, 32, 32), with 0 and 255 in it."""
    pictures = np.random.default_rng(1).integers(0, 256, (10, 3, 32, 32), dtype=np.uint8)
    pictures[0, :, 0, :2] = 0, 255
    return pictures


@pytest.fixture
def write_idx(grey: Bytes) -> Callable[[str, Path], Path]:
    """Write the four files of one dataset below a root; returns their folder."""

    def write(name: str, root: Path) -> Path:
        raw = root / FOLDERS[name] / "raw"
        raw.mkdir(parents=True)
        labels = np.arange(len(grey), dtype=np.uint8)
        for split, pictures in (("train", grey), ("t10k", grey[:2])):
            (raw / f"{split}-images-idx3-ubyte").write_bytes(idx(pictures))
            (raw / f"{split}-labels-idx1-ubyte").write_bytes(idx(labels[: len(pictures)]))
        return raw

    return write


@pytest.fixture
def write_cifar(colour: Bytes, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Write small batches below a root and make torchvision's class expect their checksums."""

    def write(root: Path) -> Path:
        from torchvision.datasets import CIFAR10

        folder = root / "cifar-10-batches-py"
        folder.mkdir(parents=True)

        def put(name: str, content: dict[str, object]) -> list[str]:
            raw = pickle.dumps(content, protocol=2)
            (folder / name).write_bytes(raw)
            return [name, hashlib.md5(raw).hexdigest()]

        train = [
            put(f"data_batch_{k + 1}", {"data": colour[2 * k : 2 * k + 2].reshape(2, -1), "labels": [0, 1]})
            for k in range(5)
        ]
        test = [put("test_batch", {"data": colour[:1].reshape(1, -1), "labels": [0]})]
        name, md5 = put("batches.meta", {"label_names": ["a", "b"]})
        monkeypatch.setattr(CIFAR10, "train_list", train)
        monkeypatch.setattr(CIFAR10, "test_list", test)
        monkeypatch.setattr(CIFAR10, "meta", {"filename": name, "key": "label_names", "md5": md5})
        return folder

    return write


@pytest.fixture
def write_folder() -> Callable[[Path], Path]:
    """Four pictures of different kinds and shapes below a root."""

    def write(root: Path) -> Path:
        from PIL import Image

        (root / "sub" / "deep").mkdir(parents=True)
        noise = np.random.default_rng(2).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        noise[10:30, 20:40] = 0
        noise[20:40, 20:40] = 255
        Image.fromarray(noise).save(root / "b.png")
        Image.fromarray(noise[:, :, 0]).save(root / "a.JPG")
        Image.fromarray(noise[:20]).save(root / "sub" / "c.bmp")
        Image.fromarray(noise).convert("P").save(root / "sub" / "deep" / "d.gif")
        Image.fromarray(noise).save(root / "sub" / "deep" / "e.webp")
        (root / "notes.txt").write_text("no picture")
        return root

    return write
