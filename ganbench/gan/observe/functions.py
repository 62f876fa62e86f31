"""Sees every torch function that a step calls: what tensors come from, what makes the host wait, backward passes."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# What a tensor comes from, kept as an attribute of it: on CUDA it would be on the device; what the generator made; the
# real batch; scores of something else than fakes.
DEVICE, FAKE, REAL, SCORED_REAL = "device", "fake", "real", "scored real"
_TAGS = "_ganbench_tags"
_NONE: frozenset[str] = frozenset()

_WAITS: Mapping[Any, str] = {
    Tensor.item: ".item()",
    Tensor.cpu: ".cpu()",
    Tensor.numpy: ".numpy()",
    Tensor.tolist: ".tolist()",
    Tensor.__array__: "conversion to NumPy",
    Tensor.__float__: "float()",
    Tensor.__int__: "int()",
    Tensor.__index__: "use as an index",
    Tensor.__bool__: "use as a condition",
    Tensor.__repr__: "printing",
    Tensor.__format__: "printing",
    Tensor.nonzero: "nonzero()",
    torch.nonzero: "nonzero()",
    Tensor.masked_select: "masked_select()",
    torch.masked_select: "masked_select()",
    Tensor.equal: "equal()",
    torch.equal: "equal()",
    Tensor.allclose: "allclose()",
    torch.allclose: "allclose()",
}
_TORCH = os.path.dirname(torch.__file__) + os.sep
# Between a call of a method of tensors and its being seen here.
_BETWEEN = (__file__, os.path.join(_TORCH, "overrides.py"), os.path.join(_TORCH, "_tensor.py"))

BACKWARD, BACKWARD_OF, GRAD = Tensor.backward, torch.autograd.backward, torch.autograd.grad


class Listener(Protocol):
    """Told of what is seen."""

    def waited(self, what: str) -> None:
        """Something makes the host wait for the device."""

    def backward(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """One of `BACKWARD`, `BACKWARD_OF` and `GRAD` is called; makes the call."""


class Functions(TorchFunctionMode):
    """Hands calls through, and tells a listener. `quiet` while ganbench itself calls torch."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener
        self.quiet = False
        # What was brought to the host last. On the CPU it is the very tensor, and only the next call tells them apart.
        self._fetched: Callable[[], Tensor | None] = _nothing

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if self.quiet:
            return func(*args, **given)
        if func is BACKWARD or func is BACKWARD_OF or func is GRAD:
            return self._listener.backward(func, args, given)
        on_host = bool(args) and args[0] is not None and args[0] is self._fetched()
        wait = None if on_host else _wait(func, args, given)
        self._fetched = _nothing
        if wait is not None and not _called_by_torch(sys._getframe()):
            self._listener.waited(wait)
        result = func(*args, **given)
        if isinstance(result, Tensor | tuple | list):
            tags = _tags_after(args, given)
            if wait is not None or on_host:
                tags -= {DEVICE}
            if isinstance(result, Tensor) and wait is not None and result is args[0]:
                self._fetched = weakref.ref(result)
            elif tags:
                for tensor in _tensors((result,)):
                    tag(tensor, tags)
        return result


def _nothing() -> None:
    return None


def tags_of(*values: Any) -> frozenset[str]:
    """What the tensors among these come from."""
    found = _NONE
    for tensor in _tensors(values):
        found |= getattr(tensor, _TAGS, _NONE)
        if tensor.requires_grad or tensor.is_cuda:
            found |= {DEVICE}
    return found


def tag(tensor: Tensor, tags: frozenset[str], *, anew: bool = False) -> None:
    """Say what a tensor comes from, besides what was said before; `anew`: in its place."""
    setattr(tensor, _TAGS, tags if anew else tags | getattr(tensor, _TAGS, _NONE))


def _tensors(values: Any, depth: int = 2) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif depth and isinstance(value, list | tuple):
            yield from _tensors(value, depth - 1)


def _tags_after(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> frozenset[str]:
    tags = tags_of(*args, *kwargs.values())
    device = kwargs.get("device")
    if isinstance(device, torch.device) or any(isinstance(value, torch.device) for value in args):
        tags |= {DEVICE}
    return tags


def _wait(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """What makes the host wait in a call of this function on a CUDA device; None where nothing does."""
    try:
        what = _WAITS.get(func)
    except TypeError:  # not hashable
        return None
    if func is Tensor.to and "cpu" in (*(a for a in args[1:] if isinstance(a, str)), kwargs.get("device")):
        what = '.to("cpu")'
    if func is Tensor.__getitem__ and isinstance(args[1], Tensor) and args[1].dtype is torch.bool:
        what = "choosing by a mask"
    # A tensor that is made on the host is read there at once.
    return what if what is not None and DEVICE in tags_of(*args) else None


def _called_by_torch(frame: FrameType | None) -> bool:
    """Whether torch itself calls: an optimizer reads its own counters, which lie on the host."""
    while frame is not None and frame.f_code.co_filename in _BETWEEN:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)
