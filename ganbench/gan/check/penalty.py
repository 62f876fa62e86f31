"""A gradient penalty that is one: it reaches the critic's parameters, with finite gradients."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ganbench.errors import ErrorKind, classify
from ganbench.gan.check.batches import in_place_of, tensor_of
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding


def penalty_reaches_critic(parts: Parts) -> Iterator[Finding]:
    """The penalty term changes the gradients of the discriminator's parameters."""
    loss = parts.loss
    if not loss.needs_penalty:
        return
    real, fakes = parts.real(parts.probe), parts.fakes().detach()
    mix = torch.rand(parts.probe, generator=torch.Generator().manual_seed(0)).to(parts.device)
    parameters = [parameter for parameter in parts.discriminator.parameters() if parameter.requires_grad]
    try:
        penalty = loss.penalty(
            lambda between: parts.scores(in_place_of(real, between)), tensor_of(real), tensor_of(fakes), mix
        )
        if not penalty.requires_grad:
            yield Finding(
                "penalty-without-graph",
                "warning",
                "the penalty is a constant: it shows in the loss, and trains nobody",
                f"penalty {float(penalty):.4g} without a graph",
                "compute its gradient with torch.autograd.grad(…, create_graph=True)",
            )
            return
        gradients = torch.autograd.grad(penalty, parameters, allow_unused=True)
    except Exception as error:  # noqa: BLE001 - whatever a user's network or penalty raises is what is looked for
        twice = classify(type(error).__name__, str(error)) is ErrorKind.DOUBLE_BACKWARD_UNSUPPORTED
        yield Finding(
            "penalty-raises",
            "error",
            "the penalty cannot be trained on: "
            + ("a part of the discriminator has no second derivative" if twice else "it raises"),
            parts.told("discriminator", error),
            "gradients of gradients need: no first layer that edits its input in place, no reentrant checkpointing, "
            "no compiled discriminator",
        )
        return
    there = [gradient for gradient in gradients if gradient is not None]
    if not all(bool(torch.isfinite(gradient).all()) for gradient in there):
        yield Finding(
            "penalty-not-finite",
            "error",
            "the penalty's gradient is NaN or infinite",
            f"penalty {float(penalty):.4g}",
            "take the norm with .norm(2, dim=1), whose gradient at 0 is 0, not with sqrt(sum(…))",
        )
    elif not any(bool(gradient.any()) for gradient in there):
        yield Finding(
            "penalty-reaches-nobody",
            "warning",
            "the penalty gives the discriminator's parameters no gradient: it trains nobody",
            f"penalty {float(penalty):.4g}; {len(there)} of {len(parameters)} parameters reached, all gradients zero",
            "leave detach() and no_grad() out of the penalty, and out of the discriminator's forward()",
        )
