"""When a network's parameters change, told by their values: fused optimizers do not count a tensor's versions up."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


class Weights:
    """Counts for each network how often its parameters were seen to have changed: its epoch."""

    def __init__(self, networks: Mapping[str, nn.Module]) -> None:
        self.parameters = {name: list(module.parameters()) for name, module in networks.items()}
        holders: dict[int, set[str]] = {}
        for name, parameters in self.parameters.items():
            for parameter in parameters:
                holders.setdefault(id(parameter), set()).add(name)
        # What both networks hold belongs to the updates of both: whose gradient lies there says nothing.
        self.own = {
            name: [parameter for parameter in parameters if len(holders[id(parameter)]) == 1]
            for name, parameters in self.parameters.items()
        }
        self.epochs = dict.fromkeys(networks, 0)
        self._values = {name: [_copy(p) for p in parameters] for name, parameters in self.parameters.items()}

    @torch.no_grad()
    def look(self) -> list[str]:
        """The networks that have changed since the last look; their epoch is counted up."""
        changed = []
        for name, parameters in self.parameters.items():
            values, differs = self._values[name], False
            for n, parameter in enumerate(parameters):
                if not _same(values[n], parameter):
                    values[n], differs = _copy(parameter), True
            if differs:
                self.epochs[name] += 1
                changed.append(name)
        return changed


def _copy(parameter: nn.Parameter) -> Tensor | None:
    return None if is_lazy(parameter) else parameter.detach().clone()


def _same(before: Tensor | None, now: nn.Parameter) -> bool:
    if before is None or is_lazy(now):
        return before is None and is_lazy(now)
    if before.shape != now.shape or before.dtype != now.dtype or before.device != now.device:
        return False
    # Diverged weights are equal to themselves too.
    return torch.equal(before, now) or torch.allclose(before, now, rtol=0, atol=0, equal_nan=True)
