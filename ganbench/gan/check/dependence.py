"""What depends on what: outputs on inputs, gradients on the parameters that should get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from ganbench.gan.check.batches import in_place_of, tensor_of
from ganbench.gan.check.layers import listed
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding

_SEED = 0


def outputs_are_finite(parts: Parts) -> Iterator[Finding]:
    """Fakes and scores are numbers before the first update."""
    fakes = parts.fakes()
    for role, kind, values in (
        ("generator", "fakes", tensor_of(fakes)),
        ("discriminator", "scores of real items", parts.scores(parts.real(parts.probe))),
        ("discriminator", "scores of fakes", parts.scores(fakes)),
    ):
        bad = int((~torch.isfinite(values)).sum())
        if bad:
            yield Finding(
                "output-not-finite",
                "error",
                f"{kind} hold NaN or infinity before the first update",
                f"{bad} of {values.numel()} values of the {role}'s output",
                "look at its initial weights, at divisions and logarithms in forward(), and at the precision",
            )
            return


def outputs_depend_on_inputs(parts: Parts) -> Iterator[Finding]:
    """Other latents give other fakes, other items other scores."""
    noise, items = _two(parts.latents, parts.probe), _two(parts.real, parts.probe)
    for role, inputs, given, call in (
        ("generator", "latents", noise, parts.pair.generate),
        ("discriminator", "items", items, parts.scores),
    ):
        first, second = (_repeatable(call, one) for one in given)
        if not torch.equal(first, second):
            continue
        gradient = _gradient(call, given[0])
        if gradient is not None and bool(gradient.any()):
            continue  # the inputs' share is below the output's rounding, as with small initial weights
        connected = gradient is not None
        yield Finding(
            "input-ignored",
            "note" if connected else "warning",
            f"the {role} gives the same for other {inputs}"
            + (" at its initial weights" if connected else ": it does not use them"),
            f"two batches of {parts.probe} different {inputs}, equal outputs; "
            + ("their gradient is zero" if connected else "no gradient reaches them"),
            "nothing, where a layer starts at zero on purpose; else look for units that are dead from the start, such "
            "as ReLUs after large negative biases, and use forward()'s argument"
            if connected
            else "use forward()'s argument in it",
        )


def _two(draw: Callable[[int], Tensor], count: int) -> tuple[Tensor, Tensor]:
    """Two batches that differ in everything but their labels."""
    first = draw(count)
    return first, in_place_of(first, tensor_of(draw(count)))


def _repeatable(call: Callable[[Tensor], Tensor], given: Tensor) -> Tensor:
    """An output whose own randomness is the same at every call."""
    tensor = tensor_of(given)
    devices = [tensor.device] if tensor.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad():
        torch.manual_seed(_SEED)
        made: Tensor = tensor_of(call(in_place_of(given, tensor.clone())))
        return made


def _gradient(call: Callable[[Tensor], Tensor], given: Tensor) -> Tensor | None:
    """The gradient of an output's sum with respect to the input; None where the graph does not lead back to it."""
    leaf = tensor_of(given).clone().requires_grad_(True)
    # Times one: a network that edits its input in place must not meet a leaf.
    output = tensor_of(call(in_place_of(given, leaf * 1)))
    return torch.autograd.grad(output.sum(), leaf, allow_unused=True)[0] if output.requires_grad else None


def gradients_reach_parameters(parts: Parts) -> Iterator[Finding]:
    """Each loss gives every trainable parameter of its network a gradient."""
    pair = parts.pair
    yield from _reached("generator", parts.generator, pair.generator_loss(parts.fakes()))
    real, fakes = parts.real(parts.probe), parts.fakes().detach()
    yield from _reached("discriminator", parts.discriminator, pair.discriminator_loss(real, fakes))


def _reached(role: str, network: nn.Module, loss: Tensor) -> Iterator[Finding]:
    named = [(name, parameter) for name, parameter in network.named_parameters() if parameter.requires_grad]
    if not loss.requires_grad:
        yield Finding(
            "no-gradient",
            "error",
            f"the {role}'s loss does not depend on any parameter: there is nothing to train",
            "the loss has no graph",
            "leave detach(), no_grad(), .item() and .data out of forward() and out of the loss",
        )
        return
    gradients = torch.autograd.grad(loss, [parameter for _, parameter in named], allow_unused=True)
    without = [f"{role}.{name}" for (name, _), gradient in zip(named, gradients, strict=True) if gradient is None]
    if len(without) == len(named):
        yield Finding(
            "no-gradient",
            "warning",
            f"the {role}'s loss reaches none of its parameters: it never moves, and nothing raises",
            f"no gradient for {listed(without, 3)}",
            "leave detach(), no_grad(), .item() and .data out of forward(), of the generator's as of the "
            "discriminator's",
        )
    elif without:
        yield Finding(
            "unused-parameters",
            "warning",
            f"parameters of the {role} get no gradient from its loss: they never move",
            listed(without),
            "use them in forward(), leave them out, or freeze them; heads for other losses are not trained here",
        )


def fakes_are_repeatable(parts: Parts) -> Iterator[Finding]:
    """The same latents give the same fakes in evaluation mode."""
    latents, pair = parts.latents(parts.probe), parts.pair
    pair.g.module.eval()
    with torch.no_grad():
        same = torch.equal(pair.sample(latents), pair.sample(latents))
    if not same:
        yield Finding(
            "internal-noise",
            "note",
            "the generator draws noise of its own: the same latents give other fakes at every call",
            f"two calls on the same {parts.probe} latents in evaluation mode differ",
            "nothing; only no_grad_replay, which runs the generator again, makes other fakes than it was asked for",
        )
