"""Parameters: those that nobody sees, those that both networks hold, frozen and unborn ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from ganbench.gan.check.layers import listed
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding

# How deep lists in lists are followed.
_DEEPEST = 4
# What nn.Module keeps of itself: registered parts, hooks.
_OWN = frozenset(vars(nn.Module()))


def trainable(parts: Parts) -> Iterator[Finding]:
    """Each network has parameters that an optimizer can move."""
    for role, network in parts.networks:
        if not any(parameter.requires_grad for parameter in network.parameters()):
            count = len(list(network.parameters()))
            yield Finding(
                "no-trainable-parameters",
                "error",
                f"the {role} has no parameters that can be trained",
                f"parameters() gives {count}, all frozen" if count else "parameters() gives none",
                "assign layers to attributes of the module, or to an nn.ModuleList, before training asks for them",
            )


def hidden(parts: Parts) -> Iterator[Finding]:
    """No layers and no parameters in places where `parameters()` does not look."""
    for role, network in parts.networks:
        known = {id(parameter) for parameter in network.parameters()}
        layers: list[str] = []
        tensors: list[str] = []
        for path, thing in _unregistered(network, role):
            if isinstance(thing, nn.Module):
                missing = [p for p in thing.parameters() if p.requires_grad and id(p) not in known]
                if missing:
                    layers.append(f"{path}: {type(thing).__name__} with {sum(p.numel() for p in missing)} numbers")
            # A weight that a hook computes anew is no leaf: old spectral and weight norm keep theirs like that.
            elif thing.requires_grad and thing.is_leaf and id(thing) not in known:
                tensors.append(f"{path}: tensor {tuple(thing.shape)}")
        if layers:
            yield Finding(
                "hidden-layers",
                "warning",
                f"layers of the {role} are invisible to parameters(): they are neither trained, moved to a device "
                "nor saved",
                listed(layers),
                "put them into an nn.ModuleList or nn.ModuleDict, or assign each to an attribute",
            )
        if tensors:
            yield Finding(
                "hidden-parameters",
                "warning",
                f"tensors of the {role} want gradients, but are invisible to parameters(): no optimizer moves them",
                listed(tensors),
                "wrap each in nn.Parameter and assign it to an attribute, or put them into an nn.ParameterList",
            )


def _unregistered(network: nn.Module, role: str) -> Iterator[tuple[str, nn.Module | Tensor]]:
    """Modules and tensors among the plain attributes of a network's modules, in containers too."""
    for name, module in network.named_modules():
        for attribute, value in vars(module).items():
            if attribute not in _OWN:
                yield from _inside(value, f"{role}.{name}.{attribute}".replace("..", "."), 0)


def _inside(value: object, path: str, depth: int) -> Iterator[tuple[str, nn.Module | Tensor]]:
    if isinstance(value, nn.Module | Tensor):
        yield path, value
    elif depth >= _DEEPEST:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _inside(item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for n, item in enumerate(value):
            yield from _inside(item, f"{path}[{n}]", depth + 1)


def shared(parts: Parts) -> Iterator[Finding]:
    """What both networks hold."""
    names = {id(parameter): name for name, parameter in parts.generator.named_parameters()}
    both = [
        f"generator.{names[id(parameter)]} = discriminator.{name}"
        for name, parameter in parts.discriminator.named_parameters()
        if id(parameter) in names
    ]
    if both:
        yield Finding(
            "shared-layers",
            "warning",
            "both networks hold the same parameters: both optimizers move them, each towards its own loss",
            listed(both),
            "where that is not meant, construct the layer once for each network; where it is, use a strategy that "
            "shows D detached fakes: detach, toggle, no_grad_replay or no_grad_fresh",
        )


def frozen(parts: Parts) -> Iterator[Finding]:
    """What is not trained by its author's wish."""
    for role, network in parts.networks:
        named = [f"{role}.{name}" for name, p in network.named_parameters() if not p.requires_grad]
        if named and len(named) < len(list(network.parameters())):
            yield Finding(
                "frozen-parameters",
                "note",
                f"parts of the {role} are frozen and stay so: no strategy thaws them",
                listed(named),
                "nothing, where that is meant; else leave requires_grad_(False) out",
            )


def lazy(parts: Parts) -> Iterator[Finding]:
    """Layers that take their width from their first batch have no weights before it."""
    for role, network in parts.networks:
        named = [
            f"{role}.{name}"
            for name, tensor in (*network.named_parameters(), *network.named_buffers())
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer)
        ]
        if named:
            yield Finding(
                "lazy-layers",
                "warning",
                f"layers of the {role} have no weights before their first batch: an init function applied in the "
                "constructor did nothing to them, and their weights are drawn outside of the seed for weights",
                listed(named),
                "give the widths, or run one batch through the network at the end of its constructor, before "
                "self.apply(init)",
            )
