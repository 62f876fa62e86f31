"""A loaded dataset: pictures as bytes, points or anything else as floats, and how they become what a network reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ganbench.errors import DatasetError
from ganbench.gan.labels import batch


@dataclass(frozen=True, eq=False)
class Mixture:
    """The mixture of equally likely round Gaussians that points were drawn from.

    `centers`: float32 (K, 2); `std`: standard deviation per coordinate.
    """

    centers: Tensor
    std: float


@dataclass(frozen=True, eq=False)
class Data:
    """All items of a dataset, on one device.

    Attributes:
        items: pictures: uint8 (N, C, H, W), 0 to 255, or float32 (N, C, H, W) in their range; points: float32
            (N, 2); a user's own items may have any shape: float32 (N, …).
        value_range: pictures only: what 0 and 255 become in `floats`, what other values lie in.
        mixture: points only: where they come from, if that is known.
        labels: int64 (N,), each from 0 to `classes` - 1, where the dataset has labels.
        classes: how many there are; 0 without labels.

    Raises:
        DatasetError: items or labels have another shape or type, there are none, or pictures lack a range.
    """

    name: str
    items: Tensor
    value_range: tuple[float, float] | None = None
    mixture: Mixture | None = None
    labels: Tensor | None = None
    classes: int = 0

    def __post_init__(self) -> None:
        given = f"{str(self.items.dtype).removeprefix('torch.')} {tuple(self.items.shape)}"
        if self.value_range is not None:
            fits = self.items.dtype in (torch.uint8, torch.float32) and self.items.ndim == 4
            wanted = "pictures with a value range must be uint8 or float32 (N, C, H, W)"
        else:
            fits = self.items.dtype == torch.float32 and self.items.ndim >= 2 and self.items.ndim != 4
            wanted = "points and other items, without a value range, must be float32 (N, …), and no pictures"
        if not fits:
            raise DatasetError(f"dataset {self.name}: {wanted}; the items are {given}")
        if self.items.numel() == 0:
            raise DatasetError(f"dataset {self.name} has no items: they are {given}; give at least one")
        if self.labels is not None and (self.labels.dtype, tuple(self.labels.shape)) != (torch.int64, (self.count,)):
            given = f"{str(self.labels.dtype).removeprefix('torch.')} {tuple(self.labels.shape)}"
            raise DatasetError(
                f"dataset {self.name}: labels must be int64 ({self.count},), one an item; they are {given}"
            )

    @property
    def count(self) -> int:
        """How many items there are, N."""
        return self.items.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item: (C, H, W), or (2,)."""
        return tuple(self.items.shape[1:])

    def floats(self, rows: Tensor | None = None) -> Tensor:
        """Items as float32 (B, *shape), on the items' device.

        Bytes are scaled linearly, 0 to the low end of `value_range` and 255 to the high end; floats come
        as they are, and without `rows` they are the very tensor `items`.

        Args:
            rows: int64 (B,) on the items' device: which items, in that order. All of them when None.
        """
        chosen = self.items if rows is None else self.items.index_select(0, rows)
        if self.value_range is None or chosen.dtype != torch.uint8:
            return chosen
        low, high = self.value_range
        # A multiplication and an addition, no division: exact at both ends of [-1, 1] and of [0, 1].
        return chosen.to(torch.float32).mul_((high - low) / 255).add_(low)

    def labelled(self, rows: Tensor) -> Tensor:
        """Those items with their labels, as a labelled batch."""
        assert self.labels is not None  # asked for by those who have looked
        return batch(self.floats(rows), self.labels.index_select(0, rows))

    def without_labels(self) -> Data:
        """The same data for networks that are not called with labels."""
        return self if self.labels is None else replace(self, labels=None, classes=0)

    def to(self, device: torch.device | str) -> Data:
        """The same data with its tensors on `device`; nothing is copied that is there already."""
        mixture = self.mixture and replace(self.mixture, centers=self.mixture.centers.to(device))
        labels = self.labels if self.labels is None else self.labels.to(device)
        return replace(self, items=self.items.to(device), mixture=mixture, labels=labels)
