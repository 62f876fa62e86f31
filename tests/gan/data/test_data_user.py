"""A user's own data: every form that is taken, and what is said about those that are not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.errors import DatasetError, UserCodeError
from ganbench.gan.data import Data, load, present
from ganbench.gan.data.user import content_of
from ganbench.spec.dataset import parse_dataset

FORMS = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

pictures = torch.linspace(-1, 1, 6 * 3 * 4 * 4).view(6, 3, 4, 4)
greys = torch.arange(6 * 16, dtype=torch.uint8).view(6, 4, 4)
labels = torch.tensor([0, 2, 1, 2, 0, 1])

class Mine(Dataset):
    def __init__(self, count=6, shape=(2,), label=True):
        self.items, self.label = torch.randn(count, *shape), label
    def __len__(self):
        return len(self.items)
    def __getitem__(self, n):
        noisy = self.items[n] + torch.rand(()) * 0.01
        return (noisy, n % 3) if self.label else noisy

class Ragged(Mine):
    def __getitem__(self, n):
        return torch.zeros(2 + n)

class Pil(Mine):
    def __getitem__(self, n):
        return {"image": torch.zeros(2)}

class Broken(Mine):
    def __getitem__(self, n):
        return self.itemz[n]

class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(2)

def tensors(): return TensorDataset(pictures, labels)
def pair(): return pictures.double(), labels.numpy()
def loader(): return DataLoader(Mine(), batch_size=2, shuffle=True)
def ready(): return pictures
def small(): return pictures * 0.25 + 0.5
def wide(): return pictures * 3
def colours(): return np.arange(6 * 48, dtype=np.int64).astype(np.uint8).reshape(6, 4, 4, 3)
def hot(): return pictures, torch.eye(6)
def soft(): return pictures, torch.rand(6)
def negative(): return pictures, labels - 1
def column(): return pictures, labels[:, None]
def numbers(): return torch.arange(6.0)
def sequences(): return torch.zeros(6, 5, 7)
def bad(): return torch.full((6, 2), float("nan"))
def nothing(): return torch.zeros(0, 2)
def word(): return "pictures"
def loud():
    print("Files already downloaded and verified")
    torch.manual_seed(5)
    return pictures
made = Mine()
"""

LoadIt = Callable[..., Data]


@pytest.fixture
def load_it(tmp_path: Path) -> LoadIt:
    file = tmp_path / "data_forms.py"
    file.write_text(textwrap.dedent(FORMS))

    def read(name: str, **more: Any) -> Data:
        return load(parse_dataset({"name": f"{file}:{name}", **more}))

    return read


@pytest.mark.parametrize(
    ("name", "shape", "value_range", "classes"),
    [
        ("pictures", (3, 4, 4), (-1.0, 1.0), 0),
        ("ready", (3, 4, 4), (-1.0, 1.0), 0),
        ("tensors", (3, 4, 4), (-1.0, 1.0), 3),
        ("pair", (3, 4, 4), (-1.0, 1.0), 3),
        ("column", (3, 4, 4), (-1.0, 1.0), 3),
        ("small", (3, 4, 4), (0.0, 1.0), 0),
        ("wide", (3, 4, 4), (-3.0, 3.0), 0),
        ("greys", (1, 4, 4), (-1.0, 1.0), 0),
        ("colours", (3, 4, 4), (-1.0, 1.0), 0),
        ("Mine", (2,), None, 3),
        ("made", (2,), None, 3),
        ("loader", (2,), None, 3),
        ("numbers", (1,), None, 0),
        ("sequences", (5, 7), None, 0),
        ("hot", (3, 4, 4), (-1.0, 1.0), 0),
        ("soft", (3, 4, 4), (-1.0, 1.0), 0),
        ("negative", (3, 4, 4), (-1.0, 1.0), 0),
    ],
)
def test_every_form(load_it: LoadIt, name: str, shape: tuple[int, ...], value_range: Any, classes: int) -> None:
    data = load_it(name)
    assert (data.count, data.shape, data.value_range) == (6, shape, value_range)
    assert (data.labels is not None) == (classes > 0)
    assert data.classes == classes
    floats = data.floats(torch.tensor([5, 0]))
    assert (floats.shape, floats.dtype) == ((2, *shape), torch.float32)
    assert data.name == f"data_forms.py:{name}"


def test_values_are_those_of_the_user(load_it: LoadIt) -> None:
    wanted = torch.linspace(-1, 1, 6 * 48).view(6, 3, 4, 4)
    assert torch.equal(load_it("pictures").floats(), wanted)
    data = load_it("tensors")
    assert data.labels is not None
    assert data.labels.tolist() == [0, 2, 1, 2, 0, 1]


def test_bytes_are_scaled_to_the_range(load_it: LoadIt) -> None:
    floats = load_it("greys", range=[0, 1]).floats()
    assert torch.allclose(floats.flatten() * 255, torch.arange(96.0))
    colours = load_it("colours").items
    assert colours[0, :, 0, 1].tolist() == [3, 4, 5]


def test_arguments_reach_what_is_called(load_it: LoadIt) -> None:
    assert load_it("Mine", args={"count": 4, "shape": [3, 2], "label": False}).items.shape == (4, 3, 2)


def test_what_draws_gives_the_same_items_every_time_and_leaves_the_random_state_alone(load_it: LoadIt) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = load_it("Mine")
    torch.manual_seed(4)
    second = load_it("Mine")
    assert torch.equal(first.items, second.items)
    torch.manual_seed(3)
    load_it("loud")
    assert torch.equal(before, torch.get_rng_state())


def test_nothing_is_printed(load_it: LoadIt, capfd: pytest.CaptureFixture[str]) -> None:
    load_it("loud")
    assert capfd.readouterr() == ("", "")


def test_content_tells_items_and_labels_apart(load_it: LoadIt) -> None:
    keys = {name: content_of(load_it(name)) for name in ("pictures", "ready", "tensors", "small", "column")}
    assert keys["pictures"] == keys["ready"]
    assert keys["tensors"] == keys["column"]
    assert len(set(keys.values())) == 3


def test_a_users_data_are_present() -> None:
    assert present(parse_dataset("anywhere.py:make"))


@pytest.mark.parametrize(
    ("name", "more", "kind", "parts"),
    [
        ("wide", {"range": [-1, 1]}, DatasetError, ["stated is [-1, 1]", "[-3, 3]", "transform"]),
        ("Mine", {"range": [-1, 1]}, DatasetError, ["a range is for pictures", "(2,)"]),
        ("Ragged", {}, DatasetError, ["item 0 is (2,)", "item 1 (3,)", "resize"]),
        ("Pil", {}, DatasetError, ["item 0 is a mapping with 'image'", "ToTensor"]),
        ("bad", {}, DatasetError, ["NaN or infinity"]),
        ("nothing", {}, DatasetError, ["has no items"]),
        ("Broken", {}, UserCodeError, ["data_forms.py:Broken' raised AttributeError at line", "itemz"]),
        ("Endless", {}, UserCodeError, ["gives a Endless", "with a length"]),
        ("word", {}, UserCodeError, ["gives a str"]),
        ("Mine", {"args": {"cout": 3}}, UserCodeError, ["raised TypeError", "cout"]),
        ("made", {"args": {"count": 3}}, UserCodeError, ["is made already"]),
        ("Absent", {}, UserCodeError, ["dataset: ", "has no 'Absent'"]),
    ],
)
def test_what_cannot_be_used_is_told(
    load_it: LoadIt, name: str, more: dict[str, Any], kind: type[Exception], parts: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        load_it(name, **more)
    text = str(caught.value)
    assert [part for part in parts if part not in text] == []
    assert "\n" not in text


@pytest.mark.parametrize(("name", "classes"), [("digits", 10), ("ring8", 8), ("grid25", 25)])
def test_shipped_data_have_labels(name: str, classes: int) -> None:
    data = load(parse_dataset(name))
    assert data.labels is not None
    assert data.classes == classes == len(set(data.labels.tolist()))
    if data.mixture is not None:
        nearest = torch.cdist(data.items, data.mixture.centers).argmin(1)
        assert torch.equal(nearest, data.labels)


def test_digits_labels_are_scikit_learns() -> None:
    from sklearn.datasets import load_digits

    data = load(parse_dataset("digits"))
    assert data.labels is not None
    assert data.labels.tolist() == load_digits().target.tolist()


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_labels_of_torchvision(
    name: str, tmp_path: Path, write_idx: Callable[[str, Path], Path], write_cifar: Callable[[Path], Path]
) -> None:
    wanted = [0, 1] * 5 if name == "cifar10" else [0, 1, 2, 3, 4, 5]
    write_cifar(tmp_path) if name == "cifar10" else write_idx(name, tmp_path)
    data = load(parse_dataset({"name": name, "root": str(tmp_path)}))
    assert data.labels is not None
    assert (data.labels.tolist(), data.classes) == (wanted, 10)


def test_subfolders_of_a_folder_are_its_classes(tmp_path: Path) -> None:
    from PIL import Image

    for n, folder in enumerate(["dogs", "cats", "cats", "dogs/old"]):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (n, n, n)).save(tmp_path / folder / f"{n}.png")
    spec = parse_dataset({"name": "folder", "root": str(tmp_path), "size": 8})
    data = load(spec)
    assert data.labels is not None
    assert (data.labels.tolist(), data.classes) == ([0, 0, 1, 1], 2)
    Image.new("RGB", (8, 8)).save(tmp_path / "stray.png")
    assert load(spec).labels is None
