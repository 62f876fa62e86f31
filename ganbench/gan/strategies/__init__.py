"""One file a strategy; what is expected of each stands in `ganbench.spec.strategy`."""

from __future__ import annotations

import importlib

from ganbench.gan.pair import Pair
from ganbench.gan.strategies.base import Strategy


def make(name: str, pair: Pair) -> Strategy:
    """The strategy of that name: class `RetainDeferred` in file `retain_deferred.py`, and so on."""
    module = importlib.import_module(f"{__name__}.{name}")
    kind = getattr(module, "".join(part.capitalize() for part in name.split("_")))
    strategy: Strategy = kind(pair)
    return strategy


__all__ = ["Strategy", "make"]
