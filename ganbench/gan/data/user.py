"""A user's own data: a torch Dataset, a tensor, or what gives one of them when it is called."""

from __future__ import annotations

import contextlib
import hashlib
import io
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from ganbench.errors import DatasetError, UserCodeError
from ganbench.gan.data.data import Data
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.switches import watched
from ganbench.gan.foreign.telling import told

if TYPE_CHECKING:
    from ganbench.spec.dataset import UserDatasetSpec

# Rounding and resizing may leave a range by so much of its span.
_SLACK = 0.01
_KNOWN_RANGES = ((0.0, 1.0), (-1.0, 1.0))


def load_user(spec: UserDatasetSpec) -> Data:
    """All items of a user's dataset, read once, from fixed random states: transforms that draw give the same items in
    every run.

    Pictures are bytes (N, H, W), (N, C, H, W) or (N, H, W, C), or numbers (N, C, H, W) in `spec.range`; anything else
    is taken as it is, as float32. Labels are the second element of an item where that is a whole number.

    Raises:
        UserCodeError: the file or the name cannot be used, or the user's code raises.
        DatasetError: what it gives is no dataset, or does not lie in its range.
    """
    place = spec.place
    found = named(place, "dataset", spec.argv)
    with _quietly(place):
        items, labels = _read(_made(found, spec), spec)
    if items.is_floating_point() and not bool(torch.isfinite(items).all()):
        raise DatasetError(f"dataset {spec.name}: items hold NaN or infinity; mend them, or leave them out")
    kept, value_range = _of_form(spec, items)
    return Data(spec.name, kept, value_range, labels=labels, classes=0 if labels is None else int(labels.max()) + 1)


def content_of(data: Data) -> str:
    """What identifies the items and labels: the first 16 digits of their SHA-256."""
    digest = hashlib.sha256()
    for tensor in (data.items, data.labels):
        if tensor is not None:
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _quietly(place: str) -> Iterator[None]:
    """Random states from a fixed seed and put back, as global switches are; no progress bars; errors told."""
    where = place.rpartition(":")[0]
    ear = io.StringIO()
    try:
        with watched(), contextlib.redirect_stdout(ear), contextlib.redirect_stderr(ear):
            yield
    except (UserCodeError, DatasetError):
        raise
    except (Exception, SystemExit) as error:
        raise UserCodeError(f"dataset: reading '{place}' raised {told(error, where)}") from error


def _made(found: Any, spec: UserDatasetSpec) -> Any:
    """The dataset itself, from what the place names."""
    called = isinstance(found, type) or (callable(found) and not isinstance(found, Dataset | Tensor))
    if called:
        found = found(**spec.args)
    elif spec.args:
        raise UserCodeError(f"dataset: '{spec.place}' is made already, and takes no args")
    return found.dataset if isinstance(found, DataLoader) else found


def _read(made: Any, spec: UserDatasetSpec) -> tuple[Tensor, Tensor | None]:
    """Items and, where there are any, labels."""
    if isinstance(made, TensorDataset):
        made = made.tensors
    if isinstance(made, Tensor | np.ndarray):
        return torch.as_tensor(made).detach().cpu(), None
    if isinstance(made, tuple | list) and 1 <= len(made) <= 2 and _is_table(made[0]):
        labels = _labels(made[1]) if len(made) == 2 and len(made[1]) == len(made[0]) else None
        return torch.as_tensor(made[0]).detach().cpu(), labels
    indexed = hasattr(made, "__getitem__") and hasattr(made, "__len__")
    if not indexed or isinstance(made, IterableDataset | str | bytes | Mapping):
        kind = type(made).__name__
        raise UserCodeError(
            f"dataset: '{spec.place}' gives a {kind}; needed is a torch Dataset with a length, a tensor (N, …), "
            "(items, labels), or what gives one of these when it is called"
        )
    return _stacked(made, spec)


def _is_table(given: Any) -> bool:
    return isinstance(given, Tensor | np.ndarray) and given.ndim >= 2


def _stacked(dataset: Any, spec: UserDatasetSpec) -> tuple[Tensor, Tensor | None]:
    items: Tensor | None = None
    labels: list[Any] = []
    count = len(dataset)
    for n in range(count):
        entry = dataset[n]
        item = entry[0] if isinstance(entry, tuple | list) else entry
        if not isinstance(item, Tensor | np.ndarray):
            given = f"a mapping with {', '.join(map(repr, item))}" if isinstance(item, Mapping) else type(item).__name__
            raise DatasetError(
                f"dataset {spec.name}: items are tensors or (tensor, label), item {n} is {given}; give it a "
                "transform such as ToTensor(), or a Dataset around it that picks the tensor"
            )
        tensor = torch.as_tensor(item)
        if items is None:
            items = torch.empty((count, *tensor.shape), dtype=tensor.dtype)
        if tensor.shape != items.shape[1:]:
            raise DatasetError(
                f"dataset {spec.name}: items are of one shape, item 0 is {tuple(items.shape[1:])} and item {n} "
                f"{tuple(tensor.shape)}; resize or crop them in its transform"
            )
        items[n] = tensor.detach()
        if isinstance(entry, tuple | list) and len(entry) > 1:
            labels.append(entry[1])
    if items is None:
        raise DatasetError(f"dataset {spec.name}: it has no items; look at what it is given in dataset.args")
    return items, _labels(labels) if len(labels) == count else None


def _labels(given: Sequence[Any] | Tensor) -> Tensor | None:
    """int64 (N,) where all are whole numbers from 0 on; else there are no labels."""
    if isinstance(given, Tensor | np.ndarray):
        table = torch.as_tensor(given).detach().cpu()
    else:
        plain = [one.item() if isinstance(one, Tensor | np.generic) and np.ndim(one) == 0 else one for one in given]
        if not all(isinstance(one, numbers.Integral) for one in plain):
            return None
        table = torch.tensor(plain)
    if table.is_floating_point() or table.is_complex() or table.dtype == torch.bool or table.squeeze().dim() > 1:
        return None
    flat = table.reshape(len(table), -1)[:, 0].to(torch.int64) if table.numel() == len(table) else None
    return flat if flat is not None and len(flat) and int(flat.min()) >= 0 else None


def _of_form(spec: UserDatasetSpec, items: Tensor) -> tuple[Tensor, tuple[float, float] | None]:
    """Items as they are kept, and the range of pictures."""
    if items.dtype == torch.uint8 and items.dim() >= 3:
        if items.dim() == 3:
            items = items.unsqueeze(1)
        elif items.dim() == 4 and items.shape[3] in (1, 3) and items.shape[1] not in (1, 3):
            items = items.permute(0, 3, 1, 2)
        if items.dim() == 4:
            return items.contiguous(), spec.range or (-1.0, 1.0)
    items = items.to(torch.float32).contiguous()
    if items.dim() == 1:
        items = items.unsqueeze(1)
    if items.dim() == 4:
        return items, _range(spec, items)
    if spec.range is not None:
        raise DatasetError(
            f"dataset {spec.name}: a range is for pictures (C, H, W), its items have the shape "
            f"{tuple(items.shape[1:])}; leave dataset.range out"
        )
    return items, None


def _range(spec: UserDatasetSpec, pictures: Tensor) -> tuple[float, float]:
    least, most = (float(pictures.min()), float(pictures.max())) if pictures.numel() else (0.0, 1.0)
    if spec.range is not None:
        low, high = spec.range
        slack = _SLACK * (high - low)
        if least < low - slack or most > high + slack:
            raise DatasetError(
                f"dataset {spec.name}: pictures lie in their range, stated is [{low:g}, {high:g}], they lie in "
                f"[{least:g}, {most:g}]; state the range they have, or scale them in the dataset's transform"
            )
        return spec.range
    known = next((r for r in _KNOWN_RANGES if r[0] - _SLACK <= least and most <= r[1] + _SLACK), None)
    return known or (least, most if most > least else least + 1.0)
