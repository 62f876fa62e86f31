"""Which backward passes the gradients that lie in each parameter come from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ganbench.gan.observe.timeline import Backward, Taken

# Values of so many elements are multiplied at once, in float64.
_CHUNK = 1 << 20


class Gradients:
    """Keeps what each backward pass adds to each parameter, as long as it lies there.

    A hook on a leaf is called once in a pass, with all that the pass adds. Gradients count as cleared where `.grad` is
    None, all zeros, or another tensor than the one that was filled.
    """

    def __init__(self, own: dict[str, list[nn.Parameter]]) -> None:
        self._own = own
        self._network = {id(p): name for name, parameters in own.items() for p in parameters}
        self._hooks: dict[int, RemovableHandle] = {}
        self._lying: dict[int, dict[int, Tensor]] = {}
        self._used: dict[int, set[int]] = {}
        self._filled: dict[int, Tensor | None] = {}
        self._now: Backward | None = None

    def begin(self, backward: Backward) -> None:
        """What parameters get from now on is this pass's."""
        self.notice_cleared()
        for parameters in self._own.values():
            for parameter in parameters:
                if parameter.requires_grad and id(parameter) not in self._hooks:
                    hook = partial(self._add, parameter)
                    self._hooks[id(parameter)] = parameter.register_hook(hook)  # type: ignore[no-untyped-call]
        self._now = backward if backward.fills else None

    def end(self) -> None:
        """The pass is over."""
        self._now = None
        for parameter in self._all():
            if id(parameter) in self._lying:
                self._filled[id(parameter)] = parameter.grad

    def notice_cleared(self) -> None:
        """Forget what lies no longer where it was put."""
        for parameter in self._all():
            key = id(parameter)
            if key in self._lying:
                lies = parameter.grad
                if lies is None or lies is not self._filled.get(key) or not bool(lies.any()):
                    self._lying.pop(key, None)
                    self._used.pop(key, None)
                    self._filled.pop(key, None)

    def take(self, network: str, stepped: Iterable[nn.Parameter]) -> Taken | None:
        """What a step of these parameters uses of one network's; None where it holds none of them."""
        own = {id(p) for p in self._own[network]}
        parameters = [p for p in stepped if id(p) in own]
        if not parameters:
            return None
        fresh: set[int] = set()
        used: set[int] = set()
        gram: dict[tuple[int, int], float] = {}
        for parameter in parameters:
            lying, before = self._lying.get(id(parameter), {}), self._used.setdefault(id(parameter), set())
            fresh |= set(lying) - before
            used |= set(lying) & before
            _multiply(lying, gram)
            before |= set(lying)
        empty = not any(p.grad is not None and bool(p.grad.any()) for p in parameters)
        return Taken(tuple(sorted(fresh - used)), tuple(sorted(used)), gram, empty)

    def lying_in(self, network: str) -> set[int]:
        """Passes whose gradients lie in a network, as far as no step has used them."""
        found: set[int] = set()
        for parameter in self._own[network]:
            found |= set(self._lying.get(id(parameter), {})) - self._used.get(id(parameter), set())
        return found

    def close(self) -> None:
        """Remove all hooks and let go of all tensors."""
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()
        self._lying.clear()
        self._used.clear()
        self._filled.clear()

    def _all(self) -> Iterable[nn.Parameter]:
        for parameters in self._own.values():
            yield from parameters

    def _add(self, parameter: nn.Parameter, gradient: Tensor) -> None:
        if self._now is None:
            return
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        if bool(gradient.any()):
            self._now.reached.add(self._network[id(parameter)])
            lying, copy = self._lying.setdefault(id(parameter), {}), gradient.detach().clone()
            # Twice in one pass: a checkpointed part runs backward inside it.
            lying[self._now.index] = lying[self._now.index] + copy if self._now.index in lying else copy


@torch.no_grad()
def _multiply(lying: dict[int, Tensor], gram: dict[tuple[int, int], float]) -> None:
    passes = sorted(lying)
    flat = [(torch.view_as_real(c) if c.is_complex() else c).reshape(-1) for c in (lying[i] for i in passes)]
    for start in range(0, flat[0].numel() if flat else 0, _CHUNK):
        rows = torch.stack([one[start : start + _CHUNK].double() for one in flat])
        products = (rows @ rows.T).tolist()
        for a, i in enumerate(passes):
            for b, j in enumerate(passes[a:], start=a):
                gram[i, j] = gram.get((i, j), 0.0) + products[a][b]
