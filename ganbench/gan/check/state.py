"""What lasts from one call to the next: items edited in place, and tensors that carry a graph along."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ganbench.errors import ErrorKind, classify
from ganbench.gan.check.batches import in_place_of, tensor_of
from ganbench.gan.check.layers import listed
from ganbench.gan.check.parts import Parts
from ganbench.gan.schedule import RoundInput, Schedule
from ganbench.gan.strategies import make
from ganbench.record.finding import Finding
from ganbench.spec.ratio import UpdateRatio
from ganbench.spec.strategy import REFERENCE

# The later ones could only stumble over what the first one left behind.
_ROUNDS = 3


def inputs_are_left_alone(parts: Parts) -> Iterator[Finding]:
    """No network edits what it is given: `detach()` is no copy, and batches are used again."""
    pair, latents = parts.pair, parts.latents(parts.probe)
    fakes = pair.generate(in_place_of(latents, tensor_of(latents).clone())).detach()
    edited = {
        "generator": {"latents": _edited(pair.generate, latents)},
        "discriminator": {
            "real items": _edited(pair.score, parts.real(parts.probe)),
            "fakes": _edited(pair.score, fakes),
        },
    }
    for role, kinds in edited.items():
        changed = [f"{share:.0%} of the values of {kind}" for kind, share in kinds.items() if share]
        if not changed:
            continue
        error = _breaks_backward(parts) if role == "discriminator" else ""
        yield Finding(
            "input-edited-in-place",
            "error" if error else "warning",
            f"the {role} edits its input in place: "
            + (
                "what the generator's backward pass needs is overwritten"
                if error
                else "whoever uses the same batch again gets other values, and nothing raises"
            ),
            f"changed by one call: {', '.join(changed)}" + (f"; {error}" if error else ""),
            "leave inplace=True out of its first layer; detach() shares memory, it is no copy. In later layers "
            "inplace=True does no harm",
        )


@torch.no_grad()
def _edited(call: Callable[[Tensor], object], given: Tensor) -> float:
    """The share of values that a call changes in its input."""
    before, handed = tensor_of(given), tensor_of(given).clone()
    call(in_place_of(given, handed))
    return float((before != handed).float().mean())


def _breaks_backward(parts: Parts) -> str:
    """What raises in the generator's update on fakes that the discriminator has seen; "" where nothing does."""
    pair = parts.pair
    try:
        fakes = parts.fakes()
        if parts.order == "d_first":
            pair.score(fakes.detach())
        pair.g.backward(pair.generator_loss(fakes))
    except Exception as error:  # noqa: BLE001 - whatever the edited tensors raise is what is looked for
        return parts.told("discriminator", error)
    finally:
        pair.g.clear()
        pair.d.clear()
    return ""


def rounds_can_be_played(parts: Parts) -> Iterator[Finding]:
    """A few rounds of 2:2 with the reference strategy: nothing raised, no graph carried on, losses finite."""
    pair, schedule = parts.pair, Schedule(UpdateRatio(2, 2), parts.order)
    strategy = make(REFERENCE, pair)
    lengths: dict[str, list[int]] = {}
    for played in range(_ROUNDS):
        given = RoundInput(
            latents=[parts.latents(parts.probe) for _ in range(schedule.g_updates)],
            real=[parts.real(parts.probe)],
            own_latents=[None] * schedule.d_updates,
        )
        try:
            schedule.play(strategy, given)
        except Exception as error:  # noqa: BLE001 - whatever training raises is what is looked for
            yield _raised(parts, error, played)
            return
        for name, tensor in _carried(parts).items():
            lengths.setdefault(name, []).append(graph_length(tensor))
    growing = [name for name, seen in lengths.items() if len(seen) == _ROUNDS and seen[0] < seen[1] < seen[2]]
    if growing:
        yield Finding(
            "buffer-graph-grows",
            "warning",
            "a tensor of the model keeps the graph of every call so far: memory grows with each round",
            f"{listed(growing)}; graph nodes after each round: {', '.join(map(str, lengths[growing[0]]))}",
            "detach what is remembered: self.total = self.total + h.detach().mean()",
        )
    bad = next((n for n, note in enumerate(pair.notes) if not bool(torch.isfinite(note.loss))), None)
    if bad is not None:
        yield Finding(
            "loss-not-finite",
            "error",
            "a loss is NaN or infinite within the first rounds: every run diverges at once",
            f"update {bad + 1} of {len(pair.notes)}, of the {'generator' if pair.notes[bad].player == 'g' else 'discriminator'}",  # noqa: E501
            "look at the loss on these scores, at the learning rates and at the precision",
        )


def _raised(parts: Parts, error: Exception, played: int) -> Finding:
    """The model's tensor is to blame where one carries a graph along; the strategy never is: it is the reference."""
    kind, carried = classify(type(error).__name__, str(error)), _carried(parts)
    if kind in (ErrorKind.GRAPH_FREED, ErrorKind.MODIFIED_IN_PLACE) and carried:
        return Finding(
            "buffer-holds-graph",
            "error",
            "a tensor of the model carries the graph of one call into the next: it is the model that makes every "
            "strategy fail, not the strategy",
            f"{listed(list(carried))}; round {played + 1} with {REFERENCE}: {type(error).__name__}, {kind}",
            "detach what is remembered: self.ema = 0.9 * self.ema + 0.1 * h.detach().mean(0)",
        )
    role = "discriminator" if parts.places.get("discriminator") == parts.places.get("generator") else ""
    return Finding(
        "training-raises",
        "error",
        f"training with the reference strategy {REFERENCE} raises",
        f"round {played + 1}: {parts.told(role or _raiser(parts, error), error)}",
        "play one round by hand and mend what raises; no strategy will do better",
    )


def _raiser(parts: Parts, error: Exception) -> str:
    """The role in whose file the error arose."""
    for role in parts.places:
        if " at line " in parts.told(role, error):
            return role
    return "generator"


def _carried(parts: Parts) -> dict[str, Tensor]:
    """Tensors of the networks that have a graph after the round is over: name -> tensor."""
    found: dict[str, Tensor] = {}
    for role, network in parts.networks:
        for name, module in network.named_modules():
            for attribute, value in {**module._buffers, **vars(module)}.items():
                if isinstance(value, Tensor) and value.grad_fn is not None and not _made_anew(module, attribute):
                    found[f"{role}.{name}.{attribute}".replace("..", ".")] = value
    return found


def _made_anew(module: nn.Module, attribute: str) -> bool:
    """Old spectral and weight norm compute the weight at every call, from parameters named after it."""
    return any(f"{attribute}_{end}" in module._parameters for end in ("orig", "g", "v"))


def graph_length(tensor: Tensor) -> int:
    """How many nodes of the graph can be reached from a tensor."""
    seen: set[Any] = set()
    waiting: list[Any] = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(before for before, _ in node.next_functions)
    return len(seen)
