"""Bytes of live tensors, counted exactly: the same operators give the same figures on every machine.

What is counted: every storage that was registered or seen in the output of an operator, from that moment
until the storage is freed, each rounded up to 512 bytes (the CUDA allocator's grain) and counted once however
many tensors view it. An activation that only the autograd graph still holds is live.

What is not counted: scratch memory inside an operator (matrix-multiply work space, for one) and memory the
allocator holds in reserve.

Three limits of watching. What `torch.compile` compiled runs uncompiled while a dispatch mode is active, so
its figures are those of the uncompiled run. Autograd adds gradients out of place while any dispatch mode is
active, so where one tensor feeds several places its gradient may cost one more buffer for a moment than
unwatched. And every operator call goes through Python, so never time a round that is watched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GRAIN_BYTES = 512
"""Each storage is rounded up to a multiple of this."""


class LiveTensorTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of live tensor storages while entered (`with tracker:`). Keeps no tensor alive.

    Tensors are noticed when an operator returns them inside the `with` block, backward passes and optimizer
    steps included. What was made before and is still alive has to be registered. A tracker may be entered
    several times: frees are noticed in between, new tensors are not. Only operators of the thread that
    entered it, and of backward passes started there, are seen. Under `FakeTensorMode` (entered first) it
    gives the figures of the real run.

    Attributes:
        current: bytes live now.
        peak: most bytes live at once, since the tracker was made or `reset`.
        peaks: per segment, the most bytes live at once during it; see `mark`.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current = 0
        self.peak = 0
        self.peaks: dict[str, int] = {}
        self._segment_peak = 0
        self._bytes_of: dict[int, int] = {}

    def register(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count tensors that exist already, none of them twice. See `tensors_held_by`."""
        for tensor in tensors:
            self._see(tensor)

    def mark(self, segment: str) -> None:
        """Give the peak since the previous mark (or since the tracker was made or `reset`) to `segment`.

        Where a segment comes several times, `peaks` keeps its largest. What is live at the mark also counts
        for the next segment.
        """
        self.peaks[segment] = max(self.peaks.get(segment, 0), self._segment_peak)
        self._segment_peak = self.current

    def reset(self) -> None:
        """Forget all peaks, for example those of warm-up rounds. What is live stays counted."""
        self.peaks = {}
        self.peak = self._segment_peak = self.current

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operator and count the storages of its outputs."""
        outputs = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(outputs):
            if isinstance(leaf, torch.Tensor):
                self._see(leaf)
        return outputs

    def _see(self, tensor: torch.Tensor) -> None:
        for part in _dense_parts(tensor):
            storage = part.untyped_storage()
            # The address of the C++ storage names it for as long as it lives; the finalizer runs before it
            # can be reused.
            key = storage._cdata
            size = _rounded(storage.nbytes())
            known = self._bytes_of.get(key)
            if known is None:
                # torch keeps the Python storage object for as long as C++ holds the storage, so this is the
                # true end.
                weakref.finalize(storage, self._forget, key).atexit = False
            elif known == size:
                continue
            self._bytes_of[key] = size
            self.current += size - (known or 0)
        self.peak = max(self.peak, self.current)
        self._segment_peak = max(self._segment_peak, self.current)

    def _forget(self, key: int) -> None:
        self.current -= self._bytes_of.pop(key)


def tensors_held_by(modules: Iterable[nn.Module], optimizers: Iterable[Optimizer] = ()) -> Iterator[torch.Tensor]:
    """Parameters, gradients and buffers of `modules` and state of `optimizers`; some may come twice."""
    for module in modules:
        for parameter in module.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
        yield from module.buffers()
    for optimizer in optimizers:
        for leaf in tree_leaves(list(optimizer.state.values())):
            if isinstance(leaf, torch.Tensor):
                yield leaf


def _dense_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if tensor.layout == torch.strided:
        return (tensor,)
    if tensor.layout == torch.sparse_coo:
        return (tensor._indices(), tensor._values())
    return ()


def _rounded(size: int) -> int:
    return -(-size // GRAIN_BYTES) * GRAIN_BYTES
