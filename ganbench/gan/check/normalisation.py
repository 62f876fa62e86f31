"""Statistics over the batch where they cannot be had, or should not be; and modes that are not training's."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ganbench.gan.check.layers import listed
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding


def batch_of_one(parts: Parts) -> Iterator[Finding]:
    """BatchNorm over one item normalises the item by itself."""
    for role, network in parts.networks:
        if parts.batch_size == 1 and has_batch_norm(network):
            yield Finding(
                "batch-norm-batch-one",
                "warning",
                f"BatchNorm in the {role} takes its statistics from a single item",
                "batch_size is 1",
                "set batch_size to at least 2, or use a layer made for one item, such as InstanceNorm",
            )


def norm_under_penalty(parts: Parts) -> Iterator[Finding]:
    """No BatchNorm in a critic whose gradient is held item by item."""
    if not parts.loss.needs_penalty:
        return
    norms = [name for name, module in parts.discriminator.named_modules() if isinstance(module, _BatchNorm)]
    if norms:
        yield Finding(
            "batch-norm-under-penalty",
            "warning",
            "the gradient penalty holds the critic's gradient at each item by itself, but with BatchNorm a score "
            "depends on the whole batch (Gulrajani et al. 2017, section 4)",
            f"BatchNorm at {listed([f'discriminator.{name}' for name in norms])}",
            "replace it by LayerNorm, InstanceNorm or nothing; for dcgan set model.batch_norm: false",
        )


def has_batch_norm(network: nn.Module) -> bool:
    """True where a layer takes its statistics from the batch."""
    return any(isinstance(module, _BatchNorm) for module in network.modules())


def modes_at_first(parts: Parts) -> Iterator[Finding]:
    """Networks come in training mode."""
    for role, network in parts.networks:
        named = [f"{role}.{name}".rstrip(".") for name, module in network.named_modules() if not module.training]
        if named:
            yield Finding(
                "left-in-eval-mode",
                "warning",
                f"the {role} comes with parts in evaluation mode; training puts every part into training mode",
                listed(named),
                "leave .eval() out of the constructor; statistics that must not move belong into layers without them",
            )


def modes_kept(parts: Parts) -> Iterator[Finding]:
    """A forward leaves every part's mode as it found it."""
    pair = parts.pair
    before = {role: [module.training for module in network.modules()] for role, network in parts.networks}
    pair.score(parts.fakes())
    for role, network in parts.networks:
        changed = [
            f"{role}.{name}".rstrip(".")
            for (name, module), training in zip(network.named_modules(), before[role], strict=False)
            if module.training != training
        ]
        if changed:
            yield Finding(
                "mode-changed-in-forward",
                "warning",
                f"the {role}'s forward() changes its own mode: from its first call on it trains in another mode",
                listed(changed),
                "leave .eval() and .train() out of forward(); who calls a network decides on its mode",
            )
