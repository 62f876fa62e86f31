"""Gradients that were computed and never used by an optimizer step, in bytes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


class _Part:
    """One gradient as it came out of a backward pass; its segment is known at the next mark."""

    __slots__ = ("segment", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.segment: str | None = None


class _Gradient:
    """What lies in one storage that is some parameter's `.grad`: one part, or several added up."""

    __slots__ = ("alive", "parts", "storage", "used")

    def __init__(self, storage: int, parts: list[_Part]) -> None:
        self.storage = storage
        self.parts = parts
        self.used = False
        self.alive = True


class GradientWork:
    """Watches gradients from where they are accumulated to where their memory is freed.

    A gradient is discarded if `used` never named it and `cleared` did. One that was set aside, cleared and brought
    back for a step is used. Gradients that were added to others share their fate.
    """

    def __init__(self) -> None:
        self._of: dict[nn.Parameter, _Gradient] = {}
        self._by_storage: dict[int, _Gradient] = {}
        self._pending: list[_Part] = []
        self._discarded: list[_Part] = []

    @contextmanager
    def watching(self, parameters: Iterable[nn.Parameter]) -> Iterator[None]:
        """Notice what is accumulated into these."""
        handles = [
            p.register_post_accumulate_grad_hook(self._accumulated)  # type: ignore[no-untyped-call]
            for p in parameters
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def mark(self, segment: str) -> None:
        """What was computed since the last mark belongs to the segment."""
        for part in self._pending:
            part.segment = segment
        self._pending.clear()

    def used(self, parameters: Iterable[nn.Parameter]) -> None:
        """The gradients that lie there now go into an optimizer step."""
        for parameter in parameters:
            if parameter.grad is not None:
                gradient = self._by_storage.get(_address(parameter.grad))
                if gradient is not None:
                    gradient.used = True

    def cleared(self, parameters: Iterable[nn.Parameter]) -> None:
        """The gradients that lie there now are about to be dropped."""
        for parameter in parameters:
            self._of.pop(parameter, None)

    def take(self) -> dict[str, int]:
        """Bytes discarded since the last call, by the segment in which they were computed."""
        found: dict[str, int] = {}
        for part in self._discarded:
            found[str(part.segment)] = found.get(str(part.segment), 0) + part.size
        self._discarded = []
        return found

    def _accumulated(self, parameter: torch.Tensor) -> None:
        assert isinstance(parameter, nn.Parameter)
        gradient = parameter.grad
        if gradient is None:
            return
        part = _Part(gradient.nbytes)
        self._pending.append(part)
        before = self._of.get(parameter)
        address = _address(gradient)
        if before is not None and before.alive and before.storage == address:
            before.parts.append(part)
            return
        # Autograd adds out of place while a dispatch mode is active: the old storage is gone, its work lives on.
        parts = [*before.parts, part] if before is not None else [part]
        if before is not None:
            before.used = True
        self._of[parameter] = self._by_storage[address] = new = _Gradient(address, parts)
        weakref.finalize(_storage(gradient), self._freed, new).atexit = False

    def _freed(self, gradient: _Gradient) -> None:
        gradient.alive = False
        if self._by_storage.get(gradient.storage) is gradient:
            del self._by_storage[gradient.storage]
        if not gradient.used and gradient not in self._of.values():
            self._discarded += gradient.parts


def _storage(gradient: torch.Tensor) -> torch.UntypedStorage:
    values = gradient._values() if gradient.layout == torch.sparse_coo else gradient
    return values.untyped_storage()


def _address(gradient: torch.Tensor) -> int:
    # The C++ storage's address: unique while it lives.
    address: int = _storage(gradient)._cdata
    return address
