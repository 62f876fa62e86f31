"""Where a training has come to: all parameters and buffers, and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ganbench.gan.certificate.seen import known
from ganbench.gan.session import Session

State = Mapping[str, Tensor]


def state_of(session: Session) -> dict[str, Tensor]:
    """Copies of every parameter and buffer, those that no state_dict holds among them; names begin with `g.` or
    `d.`."""
    found: dict[str, Tensor] = {}
    for player in (session.pair.g, session.pair.d):
        named = (*player.module.named_parameters(), *player.module.named_buffers())
        found |= {f"{player.name}.{name}": tensor.clone() for name, tensor in known(named)}
    return found


def equal(one: State, other: State) -> bool:
    """Whether both hold the same tensors, to the bit."""
    return one.keys() == other.keys() and all(torch.equal(tensor, other[key]) for key, tensor in one.items())


def difference(one: State, other: State) -> float:
    """The largest absolute difference of any element; NaN, another shape and a tensor that only one of them has count
    as infinitely far. Counters, such as BatchNorm's of batches, count where nothing else differs: a difference of
    theirs has another unit."""
    worst = {True: 0.0, False: 0.0}
    for key in one.keys() | other.keys():
        a, b = one.get(key), other.get(key)
        if a is None or b is None or a.shape != b.shape:
            return float("inf")
        if torch.equal(a, b):
            continue
        apart = float((a.double() - b.double()).abs().max())
        worst[a.is_floating_point()] = max(worst[a.is_floating_point()], apart if apart == apart else float("inf"))
    return worst[True] or worst[False]


def detour(one: State, other: State, start: State) -> float:
    """How far two ends are apart, relative to the way from their start to the second one: lengths over all tensors
    together. A counter that differs, or what began as nothing, is infinitely far.

    Unlike a difference of elements it does not depend on how long the steps were.
    """
    apart = way = 0.0
    for key, b in other.items():
        began = start.get(key)
        if not torch.equal(one[key], b) and (not b.is_floating_point() or began is None):
            return float("inf")
        if b.is_floating_point() and began is not None:
            apart += float((one[key].double() - b.double()).square().sum())
            way += float((b.double() - began.double()).square().sum())
    if not apart:
        return 0.0
    return (apart / way) ** 0.5 if way and apart == apart else float("inf")
