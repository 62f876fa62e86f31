"""A forecast is the real run's memory to the byte, and nothing is computed for it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from ganbench.errors import DatasetError, UserCodeError
from ganbench.execute.forecast import forecast, item_count, largest_batch, peak_bytes
from ganbench.execute.local import LocalExecutor
from ganbench.execute.memory import memory_of
from ganbench.gan.data import Data, load
from ganbench.gan.session import Session
from ganbench.spec.dataset import PictureSpec, PointSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import STRATEGIES

NETWORKS = Path(__file__).parent.parent / "gan" / "networks.py"


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def spec_of(**fields: Any) -> RunSpec:
    small = {"model": {"name": "mlp", "hidden": 24}, "latent": {"dim": 6}, "batch_size": 8, "device": "cpu"}
    return RunSpec.model_validate(small | fields)


@functools.cache
def data_of(dataset: PictureSpec | PointSpec) -> Data:
    return load(dataset)


def played(spec: RunSpec, rounds: int = 2) -> Session:
    session = Session(spec, data_of(spec.dataset), torch.device("cpu"))
    for _ in range(rounds):
        session.play_round()
    return session


def agree(**fields: Any) -> None:
    spec = spec_of(**fields)
    found = forecast(spec)
    assert found.memory is not None, found.reason
    assert found.memory == memory_of(played(spec))


def digits(size: int, channels: int = 1) -> dict[str, Any]:
    return {"name": "digits", "size": size, "channels": channels}


MODELS: dict[str, dict[str, Any]] = {
    "mlp": {},
    "mlp-bn": {"model": {"name": "mlp", "hidden": 24, "batch_norm": True}, "dataset": digits(12, 3)},
    "mlp2d": {"model": {"name": "mlp2d", "hidden": 16}, "dataset": {"name": "ring8", "points": 500}},
    "dcgan28": {"model": {"name": "dcgan", "width": 4}, "dataset": digits(28)},
    "dcgan32": {"model": {"name": "dcgan", "width": 4}, "dataset": digits(32, 3)},
    "dcgan64": {"model": {"name": "dcgan", "width": 2, "batch_norm": False}, "dataset": digits(64)},
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam-loop": {"name": "adam", "foreach": False},
    "adam-foreach": {"name": "adam", "foreach": True},
    "adam-fused": {"name": "adam", "fused": True},
    "adamw": {"name": "adamw", "weight_decay": 0.1},
    "rmsprop": {"name": "rmsprop"},
    "sgd": {"name": "sgd", "momentum": 0.9},
    "sgd-fused": {"name": "sgd", "momentum": 0.9, "fused": True},
}


@pytest.mark.parametrize(("model", "ratio", "order"), [("mlp-bn", "2:1", "g_first"), ("mlp", "3:2", "d_first")])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy(model: str, strategy: str, ratio: str, order: str) -> None:
    spec = spec_of(strategy=strategy, ratio=ratio, order=order, **MODELS[model])
    found = forecast(spec)
    if (kind := spec.expected.error_kind) is None:
        assert found.memory == memory_of(played(spec))
        return
    assert found.memory is None
    assert found.reason.startswith(f"raises {kind}: RuntimeError: ")
    with pytest.raises(RuntimeError):
        played(spec)


@pytest.mark.parametrize("loss", ["bce", "bce_prob", "bce_saturating", "lsgan", "hinge", "wgan_gp"])
@pytest.mark.parametrize("model", ["mlp2d", "dcgan32"])
def test_every_loss(model: str, loss: str) -> None:
    agree(loss=loss, strategy="retain_deferred", ratio="2:3", real_batches="per_d_update", **MODELS[model])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer(optimizer: str, precision: str) -> None:
    agree(optimizer=OPTIMIZERS[optimizer], precision=precision, ratio="2:1", **MODELS["mlp-bn"])


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("model", ["dcgan28", "dcgan64"])
def test_convolutions(model: str, precision: str) -> None:
    agree(precision=precision, loss="wgan_gp", ratio="3:2", strategy="retain_deferred", **MODELS[model])


def test_half_precision_where_the_batch_statistics_are_larger_than_a_grain() -> None:
    # 192 channels: their mean takes one grain in bfloat16 and two in float32, in which the CPU keeps it.
    agree(model={"name": "mlp", "hidden": 192, "batch_norm": True}, precision="bf16")


@pytest.mark.parametrize(
    ("batch_size", "latent"),
    [(1, {"dim": 5}), (899, {"dim": 5}), (1797, {"shape": [5, 1, 1], "distribution": "uniform"})],
)
def test_batches_of_any_part_of_the_data(batch_size: int, latent: dict[str, Any]) -> None:
    agree(batch_size=batch_size, latent=latent, strategy="no_grad_fresh", ratio="2:2", real_batches="per_d_update")


def test_weights_that_a_foreach_step_changed_are_noticed() -> None:
    spec = spec_of(strategy="retain_as_published", optimizer={"foreach": True})
    assert forecast(spec).reason.startswith("raises modified_in_place")
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        played(spec)


def test_a_fused_step_runs_on_stale_weights_there_as_here() -> None:
    agree(strategy="retain_as_published", optimizer={"fused": True}, ratio="3:2")


def test_users_networks() -> None:
    model = {"generator": f"{NETWORKS}:Generator", "discriminator": f"{NETWORKS}:Discriminator"}
    data = {"name": "digits", "size": 4}
    agree(model=model, dataset=data, strategy="retain_deferred")
    with pytest.raises(UserCodeError, match="has no 'Absent'"):
        forecast(spec_of(model=model | {"generator": f"{NETWORKS}:Absent"}, dataset=data))


def test_what_cannot_be_forecast_says_why() -> None:
    assert "scaler" in forecast(spec_of(precision="fp16")).reason
    assert "compiled" in forecast(spec_of(compile=True)).reason
    alone = forecast(spec_of(batch_size=1, model=MODELS["mlp-bn"]["model"]))
    assert alone.memory is None
    assert "more than 1 value per channel" in alone.reason
    with pytest.raises(DatasetError, match="at most 1797"):
        forecast(spec_of(batch_size=1798))


def test_the_random_state_is_left_as_it_was() -> None:
    before = torch.get_rng_state()
    forecast(spec_of())
    assert torch.equal(torch.get_rng_state(), before)


def test_cuda_is_served_by_the_cpu() -> None:
    assert forecast(spec_of(device="cuda:1")) == forecast(spec_of())


@pytest.mark.parametrize("dataset", ["digits", {"name": "digits", "size": 16, "channels": 3}, "ring8", "grid25"])
def test_counts_are_those_of_the_data(dataset: Any) -> None:
    model = {"name": "mlp2d"} if dataset in ("ring8", "grid25") else {"name": "mlp"}
    asked = spec_of(dataset=dataset, model=model).dataset
    assert item_count(asked) == data_of(asked).count


def test_a_folder_is_counted_where_it_lies(tmp_path: Path) -> None:
    for n in range(5):
        Image.new("RGB", (8, 8), (n, n, n)).save(tmp_path / f"{n}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    dataset = {"name": "folder", "root": str(tmp_path), "size": 8}
    assert item_count(spec_of(dataset=dataset).dataset) == 5
    agree(dataset=dataset, batch_size=2)
    with pytest.raises(DatasetError, match="there is no folder"):
        forecast(spec_of(dataset={"name": "folder", "root": str(tmp_path / "absent"), "size": 8}))


def test_a_dataset_that_is_not_here_is_forecast_all_the_same(tmp_path: Path) -> None:
    spec = spec_of(dataset={"name": "cifar10", "root": str(tmp_path)})
    memory = forecast(spec).memory
    assert memory is not None
    # All pictures, and their order as int64.
    assert memory.segments["data"].other > 50000 * (3072 + 8)


def test_a_parent_asks_a_process_of_its_own() -> None:
    spec = spec_of()
    answer = LocalExecutor().ask(peak_bytes, spec)
    assert answer == peak_bytes(spec)
    assert LocalExecutor().ask(peak_bytes, spec_of(strategy="reuse")) is None


def test_the_peak_grows_with_the_batch() -> None:
    peaks = [peak_bytes(spec_of(batch_size=size, ratio="2:1")) for size in (1, 2, 3, 8, 13, 55, 144)]
    known = [peak for peak in peaks if peak is not None]
    assert len(known) == len(peaks)
    assert known == sorted(known)


def test_the_largest_batch_fits_and_the_next_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = functools.cache(peak_bytes)
    monkeypatch.setattr("ganbench.execute.forecast.peak_bytes", known)
    spec = spec_of(dataset={"name": "ring8", "points": 13}, model=MODELS["mlp2d"]["model"])
    peaks = {size: known(spec.model_copy(update={"batch_size": size})) or 0 for size in range(1, 14)}
    for limit in [0, *peaks.values(), *(peak - 1 for peak in peaks.values()), 2**40]:
        fitting = [size for size, peak in peaks.items() if peak <= limit]
        assert largest_batch(spec, limit) == max(fitting, default=None)


def test_the_largest_batch_is_two_or_more_where_batch_norm_refuses_one_and_none_where_all_raise() -> None:
    fields = MODELS["mlp-bn"]
    two = peak_bytes(spec_of(batch_size=2, **fields))
    assert two is not None
    assert largest_batch(spec_of(**fields), two) == 2
    assert largest_batch(spec_of(**fields), two - 1) is None
    assert largest_batch(spec_of(strategy="reuse"), 2**40) is None
