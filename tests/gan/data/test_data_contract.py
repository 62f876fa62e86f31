"""What every dataset must do: shape, type, range, count, and the same items whenever it is read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ganbench.gan.data as data_package
from ganbench.errors import DatasetError
from ganbench.gan.data import BatchStream, Data, Mixture, load, present
from ganbench.spec.dataset import PICTURES, POINTS, PointSpec, parse_dataset

COUNTS = {"digits": 1797, "mnist": 6, "fashion_mnist": 6, "kmnist": 6, "cifar10": 10, "folder": 5}


@pytest.fixture(params=[*PICTURES, *POINTS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def given(
    name: str,
    tmp_path: Path,
    write_idx: Callable[[str, Path], Path],
    write_cifar: Callable[[Path], Path],
    write_folder: Callable[[Path], Path],
) -> dict[str, Any]:
    """The dataset's mapping, its files written if it has any."""
    if name in ("mnist", "fashion_mnist", "kmnist"):
        write_idx(name, tmp_path)
    elif name == "cifar10":
        write_cifar(tmp_path)
    elif name == "folder":
        write_folder(tmp_path)
    return {"name": name} if name in POINTS or name == "digits" else {"name": name, "root": str(tmp_path)}


def test_items_have_the_form_that_the_facts_promise(name: str, given: dict[str, Any]) -> None:
    data = load(parse_dataset(given))
    assert data.name == name
    floats = data.floats()
    assert floats.dtype == torch.float32
    assert floats.shape == (data.count, *data.shape)
    assert data.items.is_contiguous()
    if name in POINTS:
        assert data.shape == (2,)
        assert (data.count, data.items.dtype, data.value_range) == (20000, torch.float32, None)
        assert data.mixture is not None
    else:
        facts = PICTURES[name]
        assert data.shape == (facts.channels, facts.size, facts.size)
        assert (data.count, data.items.dtype, data.value_range) == (COUNTS[name], torch.uint8, (-1.0, 1.0))
        assert data.mixture is None
        assert (floats.min().item(), floats.max().item()) == (-1.0, 1.0)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(("size", "channels", "low"), [(7, 3, 0.0), (11, 1, -1.0), (40, 3, -2.0)])
def test_pictures_come_in_the_form_asked_for(given: dict[str, Any], size: int, channels: int, low: float) -> None:
    spec = parse_dataset({**given, "size": size, "channels": channels, "range": [low, 1.0]})
    data = load(spec)
    assert data.shape == (channels, size, size)
    assert data.count == COUNTS[given["name"]]
    floats = data.floats()
    assert low <= floats.min().item() < floats.max().item() <= 1.0
    if channels == 3 and given["name"] not in ("cifar10", "folder"):
        assert torch.equal(data.items[:, 0], data.items[:, 2])


def test_two_loads_are_equal_and_leave_the_global_random_state_alone(given: dict[str, Any]) -> None:
    before = torch.get_rng_state()
    first, second = load(parse_dataset(given)), load(parse_dataset(given))
    assert torch.equal(first.items, second.items)
    assert torch.equal(before, torch.get_rng_state())


def test_rows_select_in_order(given: dict[str, Any]) -> None:
    data = load(parse_dataset(given))
    rows = torch.tensor([3, 0, 3])
    assert torch.equal(data.floats(rows), data.floats()[rows])


def test_present_once_the_files_are_there(given: dict[str, Any]) -> None:
    assert present(parse_dataset(given))


def test_present_is_false_without_files(name: str, tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        given = {"name": name} if name in POINTS else {"name": name, "root": str(root)}
        assert present(parse_dataset(given)) is (name in POINTS or name == "digits")


def test_download_is_without_effect_on_what_is_here(given: dict[str, Any]) -> None:
    spec = parse_dataset(given)
    assert torch.equal(load(spec, download=True).items, load(spec).items)


SUMS = """
import hashlib
from ganbench.gan.data import load
from ganbench.spec.dataset import parse_dataset
for name in ("digits", "ring8", "grid25"):
    print(hashlib.sha256(load(parse_dataset(name)).items.numpy().tobytes()).hexdigest())
"""


def test_other_processes_see_the_same_items() -> None:
    def sums(seed: str) -> str:
        environment = {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", SUMS]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    first = sums("1")
    assert len(first.split()) == 3
    assert first == sums("2")


NO_TORCH = """
import sys
from ganbench.gan.data import folder_content, present
from ganbench.spec.dataset import parse_dataset
for name in ("digits", "mnist", "cifar10", "folder", "ring8"):
    present(parse_dataset(name))
print(folder_content(sys.argv[1]))
assert "torch" not in sys.modules and "sklearn" not in sys.modules
from ganbench.gan.data import load
load(parse_dataset("digits")), load(parse_dataset("ring8"))
assert "torchvision" not in sys.modules and "sklearn" not in sys.modules and "PIL" not in sys.modules
"""


def test_nothing_slow_is_imported_before_it_is_needed(write_folder: Callable[[Path], Path], tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", NO_TORCH, str(write_folder(tmp_path))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_dataset_that_can_be_asked_for_has_a_loader() -> None:
    assert set(data_package._LOADERS) == set(PICTURES) | set(POINTS)
    assert sorted(data_package.__all__) == data_package.__all__
    assert all(hasattr(data_package, name) for name in data_package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = data_package.Nothing


# --- digits, ring8, grid25 ---


def test_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    wanted = torch.from_numpy(load_digits().images)
    items = load(parse_dataset("digits")).items
    assert torch.equal(items[:, 0], (wanted * 255 / 16).round().to(torch.uint8))


def test_digits_without_the_table_are_asked_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from ganbench.gan.data.digits import grey_values, table

    wanted = load(parse_dataset("digits")).items
    monkeypatch.setattr(Path, "is_file", lambda _self: False)
    table.cache_clear()
    assert torch.equal(torch.from_numpy(grey_values() * 255 / 16).round().to(torch.uint8), wanted.flatten(1))


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from ganbench.gan.data.digits import table

    table.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(DatasetError, match="pip install scikit-learn"):
        load(parse_dataset("digits"))


@pytest.mark.parametrize(("name", "modes", "std"), [("ring8", 8, 0.01), ("grid25", 25, 0.05)])
def test_points_lie_around_their_modes(name: Any, modes: int, std: float) -> None:
    data = load(PointSpec(name=name))
    mixture = data.mixture
    assert mixture is not None
    assert mixture.centers.shape == (modes, 2)
    assert len({tuple(center) for center in mixture.centers.tolist()}) == modes
    assert mixture.std == std
    distance, mode = torch.cdist(data.items, mixture.centers).min(dim=1)
    assert distance.max() < 6 * std
    assert torch.bincount(mode).min() > 0.8 * data.count / modes
    offsets = data.items - mixture.centers[mode]
    assert offsets.std().item() == pytest.approx(std, rel=0.02)


def test_modes_are_where_the_literature_puts_them() -> None:
    ring, grid = (load(PointSpec(name=name)).mixture for name in ("ring8", "grid25"))
    assert ring is not None
    assert grid is not None
    assert torch.allclose(ring.centers.norm(dim=1), torch.ones(8))
    assert sorted(set(grid.centers.flatten().tolist())) == [-4.0, -2.0, 0.0, 2.0, 4.0]


def test_as_many_points_as_asked_for() -> None:
    assert load(PointSpec(name="ring8", points=1)).count == 1
    assert load(PointSpec(name="ring8", points=777)).count == 777


# --- Data ---


@pytest.mark.parametrize(
    ("items", "value_range", "message"),
    [
        (torch.zeros(2, 1, 4, 4, dtype=torch.float64), (0.0, 1.0), "must be uint8"),
        (torch.zeros(2, 4, 4, dtype=torch.uint8), (0.0, 1.0), "must be uint8"),
        (torch.zeros(2, 3, dtype=torch.int64), None, "must be float32"),
        (torch.zeros(2, 1, 4, 4), None, "and no pictures"),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), None, "without a value range"),
        (torch.zeros(0, 2), None, "has no items"),
    ],
)
def test_items_of_another_form_are_refused(
    items: torch.Tensor, value_range: tuple[float, float] | None, message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        Data("mine", items, value_range)


@pytest.mark.parametrize("value_range", [(-1.0, 1.0), (0.0, 1.0), (-0.5, 0.5), (0.0, 255.0)])
def test_scaling_is_linear_and_exact_at_both_ends(value_range: tuple[float, float]) -> None:
    low, high = value_range
    items = torch.arange(256, dtype=torch.uint8).view(256, 1, 1, 1)
    floats = Data("mine", items, value_range).floats().flatten().double()
    assert (floats[0].item(), floats[-1].item()) == (low, high)
    wanted = low + (high - low) * torch.arange(256, dtype=torch.float64) / 255
    assert torch.allclose(floats, wanted, rtol=0, atol=1e-6 * (high - low))


def test_data_moves_with_its_mixture() -> None:
    mixture = Mixture(torch.zeros(1, 2), 1.0)
    moved = Data("mine", torch.zeros(3, 2), None, mixture).to("meta")
    assert moved.items.device.type == "meta"
    assert moved.mixture is not None
    assert moved.mixture.centers.device.type == "meta"
    assert moved.floats(torch.zeros(2, dtype=torch.int64, device="meta")).device.type == "meta"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_batches_on_cuda_are_those_of_the_cpu() -> None:
    data = load(parse_dataset("digits"))
    devices = [torch.device("cpu"), torch.device("cuda")]
    streams = [BatchStream(data, 500, torch.Generator().manual_seed(0), device) for device in devices]
    for _ in range(5):
        here, there = (stream.next() for stream in streams)
        assert there.device.type == "cuda"
        assert torch.equal(here, there.cpu())
