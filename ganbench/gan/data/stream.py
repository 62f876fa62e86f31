"""An endless shuffled stream of batches from one dataset."""

from __future__ import annotations

import torch
from torch import Tensor

from ganbench.errors import DatasetError
from ganbench.gan.data.data import Data


class BatchStream:
    """Batches across passes over the data, each pass in a new order; the partial batch at its end is dropped.

    The items move to the device once, as they are stored (pictures: bytes), and the order once a pass: a call
    of `next` is a selection and a scaling on the device.

    Args:
        data: the items.
        batch_size: items a batch, at least 1.
        generator: a CPU generator, the only source of randomness: the order does not depend on the device.
        device: where batches are wanted.

    Raises:
        DatasetError: the batch is larger than the dataset, or smaller than 1.
    """

    def __init__(self, data: Data, batch_size: int, generator: torch.Generator, device: torch.device) -> None:
        if not 1 <= batch_size <= data.count:
            kind = "points" if data.shape == (2,) else "items" if data.value_range is None else "pictures"
            choice = "at least 1" if batch_size < 1 else f"at most {data.count}"
            raise DatasetError(
                f"batch_size is {batch_size}, dataset {data.name} has {data.count} {kind}; choose {choice}"
            )
        self._data = data.to(device)
        self._take = self._data.floats if data.labels is None else self._data.labelled
        self._batch_size = batch_size
        self._generator = generator
        self._per_epoch = data.count // batch_size
        self._order: Tensor | None = None
        self._given = 0

    @property
    def epochs(self) -> int:
        """Passes completed so far; a pass is complete with its last full batch."""
        return self._given // self._per_epoch

    @property
    def dropped(self) -> int:
        """Items left out so far because they did not fill a batch, over all completed passes."""
        return self.epochs * (self._data.count % self._batch_size)

    def next(self) -> Tensor:
        """The next batch: float32 (batch_size, *data.shape) on the device, in the data's value range; with its labels
        where the data have some."""
        place = self._given % self._per_epoch
        if self._order is None or place == 0:
            order = torch.randperm(self._data.count, generator=self._generator, device="cpu")
            self._order = order.to(self._data.items.device)
        start = place * self._batch_size
        self._given += 1
        return self._take(self._order[start : start + self._batch_size])
