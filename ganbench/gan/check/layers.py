"""Layers that are not what their author took them for: an argument in the wrong place, a squashing done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ganbench.gan.check.batches import tensor_of
from ganbench.gan.check.operations import operation
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding

# Beyond this an epsilon is no guard against division by zero, but a mistaken momentum.
_LARGE_EPS = 0.1
_SQUASHING = ("Tanh", "Sigmoid", "Softmax")


def leaky_slopes(parts: Parts) -> Iterator[Finding]:
    """`LeakyReLU(True)` has slope 1: no activation at all."""
    named = _named(parts, lambda module: isinstance(module, nn.LeakyReLU) and module.negative_slope == 1)
    if named:
        yield Finding(
            "leaky-relu-slope-one",
            "warning",
            "a LeakyReLU with slope 1 is no activation: what it stands between stays linear",
            named,
            "the first argument is the slope: nn.LeakyReLU(0.2, inplace=True)",
        )


def norm_epsilons(parts: Parts) -> Iterator[Finding]:
    """`BatchNorm2d(c, 0.8)` sets eps, where momentum was meant."""
    named = _named(parts, lambda module: isinstance(module, _BatchNorm) and module.eps >= _LARGE_EPS)
    if named:
        yield Finding(
            "batch-norm-eps",
            "warning",
            "BatchNorm with a large eps does not normalise: it shrinks whatever varies less than that",
            named,
            "the second argument is eps; write momentum=0.8 where that was meant",
        )


def squashed_once(parts: Parts) -> Iterator[Finding]:
    """No network ends in two squashing functions in a row."""
    for role, output in (
        ("generator", tensor_of(parts.fakes())),
        ("discriminator", parts.scores(parts.real(parts.probe))),
    ):
        last, before = operation(output), operation(output, before=1)
        if last in _SQUASHING and before in _SQUASHING:
            yield Finding(
                "activation-doubled",
                "warning",
                f"the {role} squashes its output twice: its range is narrower than it seems, its gradients smaller",
                f"{before}, then {last}",
                "leave one of them out: often one is a layer and the other stands in forward()",
            )


def wrappers(parts: Parts) -> Iterator[Finding]:
    """Networks are plain modules: no DataParallel, no DistributedDataParallel, nothing compiled or scripted."""
    named = _named(parts, _is_wrapper, classes=True)
    if named:
        yield Finding(
            "wrapped-module",
            "warning",
            "a network, or a part of it, is wrapped: its cost and its graphs are the wrapper's as well",
            named,
            "give the plain module; `compile: true` compiles both networks for every strategy alike, and a run "
            "uses one device",
        )


# By name: torch.compile's and FSDP's modules would have to be imported to be asked for.
_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule"})


def _is_wrapper(module: nn.Module) -> bool:
    named = {kind.__name__ for kind in type(module).__mro__}
    compiled_in_place = getattr(module, "_compiled_call_impl", None) is not None
    return bool(named & (_WRAPPERS | {"ScriptModule"})) or compiled_in_place


def _named(parts: Parts, chosen: Callable[[nn.Module], bool], classes: bool = False) -> str:
    """The layers chosen, by their names in the networks; the first few."""
    found = [
        f"{role}{'.' if name else ''}{name}: {type(module).__name__ if classes else module}"
        for role, network in parts.networks
        for name, module in network.named_modules()
        if chosen(module)
    ]
    return listed(found)


def listed(names: list[str], most: int = 6) -> str:
    """The first few names and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
