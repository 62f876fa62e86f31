"""One step's gradients against the declared ones, and what they are made of where they are something else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ganbench.gan.certificate.observe import Batch, Forward, Step, Update
from ganbench.gan.certificate.reference import ROLES, CannotRepeat, Reference, made_by, scored_by
from ganbench.gan.session import Session

# Whose fakes the D updates are declared to see: the last G update's; the same latents through G as it is now; own ones.
Estimator = Literal["last", "replay", "fresh"]
# Of what a gradient is made that is not the declared one.
Fault = Literal["missing", "leftover", "real batch edited", "other fakes", "stale", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One step: `share` is the length of what does not belong there relative to the declared gradient's."""

    player: str
    share: float
    fault: Fault | None
    text: str = ""


class Comparison:
    """Holds the steps of one session, round by round, against a reference."""

    def __init__(self, session: Session, reference: Reference, estimator: Estimator) -> None:
        self._reference = reference
        self._estimator = estimator
        self._needs_mix = session.pair.loss.needs_penalty
        self._cuda = [session.device] if session.device.type == "cuda" else []

    def findings(self, steps: Sequence[Step], seen: Sequence[Forward], tolerance: float) -> list[Finding]:
        """What each step was made of.

        Raises:
            CannotRepeat: the networks do not repeat their forward passes, or a gradient is not finite.
        """
        # The reference's passes draw random numbers; the training's state must not notice.
        with torch.random.fork_rng(self._cuda):
            try:
                return [self._look(step, seen[: step.until], tolerance) for step in steps]
            except (RuntimeError, TypeError, ValueError) as error:
                # Such as a loss or a network that is made for float32 alone.
                first = (str(error).splitlines() or [""])[0]
                raise CannotRepeat(f"recomputing a gradient raised {type(error).__name__}: {first}") from None

    def _look(self, step: Step, seen: Sequence[Forward], tolerance: float) -> Finding:
        update = step.update
        role = ROLES[update.player]
        mix = None
        fakes: Batch = ()
        if update.player == "g":
            declared = self._reference.generator_gradient(update, seen)
        else:
            mix = self._reference.mix(len(update.real[0])) if self._needs_mix else None
            fakes = self._declared_fakes(update, seen)
            declared = self._reference.discriminator_gradient(update, fakes, update.real, mix, seen)
        truth, got, before = _flat(declared), _flat(step.gradients, declared), _flat(update.before, declared)
        if not (bool(torch.isfinite(truth).all()) and bool(torch.isfinite(got).all())):
            raise CannotRepeat(f"a gradient of the {role} is not finite")
        share = _share(got - truth, truth)
        if share <= tolerance:
            return Finding(update.player, share, None)
        if all(g is None for g in step.gradients) or not float(got.norm()):
            return Finding(update.player, share, "missing", f"the {role} got no gradient at its step")
        if float(before.norm()) and _share(got - truth - before, truth) <= tolerance:
            size = _share(before, truth)
            text = f"the {role}'s step was made of gradients that lay there before too, {size:.3g} times as long"
            return Finding(update.player, share, "leftover", text)
        if update.player == "d" and (other := self._other_inputs(step, fakes, mix, got, seen, tolerance)):
            return Finding("d", share, *other)
        if self._outdated(update, fakes, seen):
            text = f"the {role}'s gradient went through weights that were changed after its forward pass"
            return Finding(update.player, share, "stale", text)
        text = f"the {role}'s gradient differs from the declared one by {share:.3g} of its length"
        return Finding(update.player, share, "unknown", text)

    def _declared_fakes(self, update: Update, seen: Sequence[Forward]) -> Batch:
        latents, weights = update.latents, update.fakes_weights
        if self._estimator != "last":
            weights = update.weights["g"]
            if self._estimator == "fresh" and update.own_latents is not None:
                latents = update.own_latents
        return self._reference.fakes(latents, weights, update, seen)

    def _other_inputs(
        self, step: Step, fakes: Batch, mix: Tensor | None, got: Tensor, seen: Sequence[Forward], tolerance: float
    ) -> tuple[Fault, str] | None:
        """Whether the gradient is that of the declared loss on what D was really shown, real batch first."""
        update = step.update
        shown = [one.given for one in seen[update.since :] if one.role == "d"][:2]
        if len(shown) < 2 or any(
            a.shape != b.shape for a, b in zip(shown[0] + shown[1], update.real + fakes, strict=False)
        ):
            return None
        declared = self._reference.discriminator_gradient(update, shown[1], shown[0], mix, seen)
        truth = _flat(declared)
        if _share(got - truth, truth) > tolerance:
            return None
        if not all(torch.equal(a, b) for a, b in zip(shown[0], update.real, strict=True)):
            return "real batch edited", "D was shown a real batch that an earlier pass had edited in place"
        return "other fakes", "D was shown other fakes than the declared ones"

    def _outdated(self, update: Update, fakes: Batch, seen: Sequence[Forward]) -> bool:
        """Whether a pass that this update's loss came from happened at other weights than those of its moment."""
        made = None
        shown = fakes
        if update.player == "g":
            made = made_by(seen, update)
            if made is None:
                return False
            shown = (self._reference.as_fakes(made.output), *update.latents[1:])
        scored = scored_by(seen, update, shown)
        passes = [one for one in (made, scored) if one is not None]
        return any(one.weights is not update.weights[one.role] for one in passes)


def _flat(gradients: Sequence[Tensor | None], like: Sequence[Tensor] | None = None) -> Tensor:
    """All elements in float64; zeros where there is none."""
    shapes = like if like is not None else [g for g in gradients if g is not None]
    parts = [
        (torch.zeros_like(shape) if g is None else g).detach().double().flatten().cpu()
        for g, shape in zip(gradients, shapes, strict=True)
    ]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def _share(part: Tensor, whole: Tensor) -> float:
    length, apart = float(whole.norm()), float(part.norm())
    if not apart:
        return 0.0
    return apart / length if length else math.inf
