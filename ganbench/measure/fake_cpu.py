"""Fake tensors as the CPU makes real ones, where torch's shape rules have another device in mind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class FakeCpu(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """To be entered after `FakeTensorMode`, and before a `LiveTensorTracker`.

    BatchNorm on half-precision input with float32 weights, as under autocast: the CPU saves the batch's mean and
    deviation in float32, torch's rule for fake tensors says half precision.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operator; give what BatchNorm saves the type of its weights."""
        outputs = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.native_batch_norm.default:
            normal, mean, _ = outputs
            weight = args[1]
            if weight is not None and mean.dtype != weight.dtype:
                return normal, torch.empty_like(mean, dtype=weight.dtype), torch.empty_like(mean, dtype=weight.dtype)
        return outputs
