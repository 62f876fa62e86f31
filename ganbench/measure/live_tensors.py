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

What the bytes of a peak are for is told by `split`. Autograd tells what it saves and when it lets go through its
hooks for saved tensors. They keep the same storages for the same time, but with them autograd does not notice
that a saved tensor was modified in place: look for that error in a round that is not watched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ganbench.measure.kinds import Kind, LiveStorage, Moment

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
        position: how many marks there were.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current = 0
        self.peak = 0
        self.peaks: dict[str, int] = {}
        self.position = 0
        self._live: dict[int, LiveStorage] = {}
        self._moments: dict[str, Moment] = {}
        self._open_segment()

    def register(self, tensors: Iterable[torch.Tensor], kind: Kind | None = None) -> None:
        """Count tensors, none of them twice, and say what they are for. See `tensors_held_by`.

        For tensors that exist already. One that is counted already is only given its kind.
        """
        for tensor in tensors:
            for storage in self._see(tensor):
                storage.kind = kind or storage.kind

    @contextmanager
    def watching(self, parameters: Iterable[nn.Parameter]) -> Iterator[None]:
        """Notice what becomes the gradient of these parameters and what autograd saves."""
        handles = [
            p.register_post_accumulate_grad_hook(self._accumulated)  # type: ignore[no-untyped-call]
            for p in parameters
        ]
        try:
            with saved_tensors_hooks(self._saved, _given_back):
                yield
        finally:
            for handle in handles:
                handle.remove()

    def mark(self, segment: str) -> None:
        """Give the peak since the previous mark (or since the tracker was made or `reset`) to `segment`.

        Where a segment comes several times, `peaks` keeps its largest. What is live at the mark also counts
        for the next segment.
        """
        self._look()
        if self._segment_peak > self.peaks.get(segment, -1):
            self.peaks[segment] = self._segment_peak
            self._moments[segment] = self._moment
        self.position += 1
        self._open_segment()

    def moment(self, segment: str) -> Moment:
        """What lived at the segment's peak. Its split adds up to `peaks[segment]`."""
        return self._moments[segment]

    def reset(self) -> None:
        """Forget all peaks, for example those of warm-up rounds. What is live stays counted."""
        self.peaks = {}
        self._moments = {}
        self.peak = self.current
        self._open_segment()

    def _open_segment(self) -> None:
        self._segment_peak = self.current
        self._unseen = True

    def _look(self) -> None:
        """Keep what lives now if this is the segment's peak. Called before anything is freed or let go, and not
        when the peak is reached: by then autograd has said which of the operator's tensors it saves."""
        if self._unseen:
            self._moment = Moment(self.position, self._live.values())
            self._unseen = False

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

    def _see(self, tensor: torch.Tensor) -> list[LiveStorage]:
        seen = []
        for part in _dense_parts(tensor):
            storage = part.untyped_storage()
            # The address of the C++ storage names it for as long as it lives; the finalizer runs before it
            # can be reused.
            key = storage._cdata
            size = _rounded(storage.nbytes())
            known = self._live.get(key)
            if known is None:
                known = self._live[key] = LiveStorage()
                # torch keeps the Python storage object for as long as C++ holds the storage, so this is the
                # true end.
                weakref.finalize(storage, self._forget, key).atexit = False
            seen.append(known)
            if known.size > size:
                self._look()
            self.current += size - known.size
            known.size = size
        self.peak = max(self.peak, self.current)
        if self.current > self._segment_peak:
            self._open_segment()
        return seen

    def _forget(self, key: int) -> None:
        self._look()
        self.current -= self._live.pop(key).size

    def _accumulated(self, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            self.register([parameter.grad], Kind.GRADIENTS)

    def _saved(self, tensor: torch.Tensor) -> _Saved:
        return _Saved(self, tensor, self._see(tensor))


class _Saved:
    """A tensor in the hands of an autograd graph; dropped by it as soon as the graph lets go."""

    __slots__ = ("_position", "_storages", "_tracker", "tensor")

    def __init__(self, tracker: LiveTensorTracker, tensor: torch.Tensor, storages: list[LiveStorage]) -> None:
        # Detached: an operator's own result comes with the graph, and a graph that holds itself is never freed.
        self.tensor = tensor.detach()
        self._tracker = tracker
        self._storages = storages
        self._position = tracker.position
        for storage in storages:
            storage.saves.append(self._position)

    def __del__(self) -> None:
        self._tracker._look()
        for storage in self._storages:
            storage.saves.remove(self._position)


def _given_back(saved: _Saved) -> torch.Tensor:
    return saved.tensor


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
