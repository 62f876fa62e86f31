"""One step's gradients against the declared ones, and what they are made of where they are something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ganbench.gan.certificate.observe import Observer
from ganbench.gan.certificate.reference import ROLES, CannotRepeat, Reference, repeating, scored_by
from ganbench.gan.certificate.seen import Batch, Forward, Step, Update, same
from ganbench.gan.session import Session
from ganbench.gan.streams import stream

# Whose fakes the D updates are declared to see: the last G update's; the same latents through the updated G; own ones.
Estimator = Literal["last", "replay", "fresh"]
# Of what a gradient is made that is not the declared one.
Fault = Literal["missing", "unasked", "leftover", "real batch edited", "other fakes", "stale", "unknown"]

# Up to which share a gradient may differ by rounding where nothing is known of it, and where rounding was measured.
TOLERANCE, MOST = 1e-4, 1e-2
_ROUNDINGS = 10


@dataclass(frozen=True)
class Finding:
    """One step: `share` is the length of what does not belong there relative to the declared gradient's."""

    player: str
    share: float
    fault: Fault | None
    text: str = ""


@dataclass(frozen=True)
class _Asked:
    """All that a step's declared gradient depends on. `watched`: the fakes are values of a pass that was seen."""

    step: Step
    update: Update
    fakes: Batch
    watched: bool
    mix: Tensor | None
    seen: Sequence[Forward]


class Comparison:
    """Holds the steps of one session, round by round, against a reference.

    `own`: makes a reference in the networks' own type where `reference` is in another one. A gradient that the latter
    does not confirm is held against it too: what differs by the type alone is no fault of the strategy's.
    """

    def __init__(
        self,
        session: Session,
        reference: Reference,
        own: Callable[[], Reference] | None,
        estimator: Estimator,
        tolerance: float = TOLERANCE,
    ) -> None:
        self._reference, self._own, self._estimator, self._tolerance = reference, own, estimator, tolerance
        self._exact = session.device.type == "cpu" and not session.spec.compile
        self._needs_mix = session.pair.loss.needs_penalty
        self._mixing = stream(session.spec.seed, "penalty")
        self._cuda = [session.device] if session.device.type == "cuda" else []
        # Steps that a gradient scaler skipped, by network.
        self.skipped = dict.fromkeys(ROLES, 0)

    def findings(self, observer: Observer) -> list[Finding]:
        """What each step of the observer's last round was made of.

        Raises:
            CannotRepeat: the networks do not repeat their forward passes or gradients, or one is not finite.
        """
        # The reference's passes draw random numbers; the training's state must not notice.
        with torch.random.fork_rng(self._cuda), repeating("recomputing a gradient"):
            # In the order of the updates: networks that count their calls then count the same.
            asked = {step.update.number: (step, step.update) for step in observer.steps if step.update is not None}
            found = [self._look(*asked[number], observer) for number in sorted(asked)]
        for step in observer.steps:
            if step.update is None and any(gradient is not None for gradient in step.gradients):
                text = f"the {ROLES[step.player]}'s optimizer took a step that no update asked for"
                found.append(Finding(step.player, 1.0, "unasked", text))
        for update in observer.unmade:
            text = f"an update of the {ROLES[update.player]} ended without a step of its optimizer"
            found.append(Finding(update.player, 1.0, "missing", text))
        return [one for one in found if one is not None]

    def _look(self, step: Step, update: Update, observer: Observer) -> Finding | None:
        role, seen = ROLES[update.player], observer.forwards[: step.until]
        mix = torch.rand(len(update.real[0]), generator=self._mixing) if self._needs_mix and update.real else None
        fakes, watched = self._declared_fakes(update, seen) if update.player == "d" else ((), False)
        asked = _Asked(step, update, fakes, watched, mix, seen)
        declared = _declared(self._reference, asked)
        truth, got, before = _flat(declared), _flat(step.gradients, declared), _flat(update.before, declared)
        if step.scale is not None and not _finite(got):
            self.skipped[update.player] += 1  # the scaler sees it too, and takes no step
            return None
        if not (_finite(truth) and _finite(got)):
            raise CannotRepeat(f"a gradient of the {role} is not finite")
        share = _share(got - truth, truth)
        if share > self._tolerance:
            share, confirmed = self._second_look(asked, got, truth, share)
        if share <= self._tolerance or confirmed:
            # Short steps and small edits hide behind rounding: what was done is looked at too.
            fault, text = _done(asked) or (None, "")
            return Finding(update.player, share, fault, text)
        if all(g is None for g in step.gradients) or not float(got.norm()):
            return Finding(update.player, share, "missing", f"the {role} got no gradient at its step")
        size = _share(before, truth)
        if float(before.norm()) and float((got - truth - before).norm()) <= self._tolerance * max(
            float(truth.norm()), float(before.norm())
        ):
            text = f"the {role}'s step was made of gradients that lay there before too, {size:.3g} times as long"
            return Finding(update.player, share, "leftover", text)
        if update.player in observer.unseen or "g" in observer.unseen:
            raise CannotRepeat("the strategy calls a network past the session: its passes cannot be watched")
        if update.player == "d" and (other := self._other_inputs(asked, got)):
            return Finding("d", share, *other)
        if stale := _outdated(asked):
            return Finding(update.player, share, *stale)
        text = f"the {role}'s gradient differs from the declared one by {share:.3g} of its length"
        return Finding(update.player, share, "unknown", text)

    def _second_look(self, asked: _Asked, got: Tensor, truth: Tensor, share: float) -> tuple[float, bool]:
        """The share once more, and whether the gradient is the declared one all the same: as it comes out in the
        networks' own type, or within a few times what rounding was seen to make of it.

        Raises:
            CannotRepeat: the gradient comes out in another way each time.
        """
        reference = self._reference if self._own is None else self._own()
        own, again = (_flat(_declared(reference, asked)) for _ in range(2))
        if _finite(own) and _share(own - again, own) > self._tolerance:
            raise CannotRepeat(
                f"a gradient of the {ROLES[asked.update.player]} that is computed again from the same weights, "
                f"buffers, inputs and random numbers differs by {_share(own - again, own):.2g} of its length"
            )
        if self._own is None or not _finite(own):
            return share, False
        apart = _share(got - own, own)
        if apart <= self._tolerance:
            return apart, True
        rounding = min(float((own - truth).norm()), MOST * float(truth.norm()))
        near = min(float((got - own).norm()), float((got - truth).norm()))
        # On the CPU the own type repeats to the bit: nothing is left to rounding.
        return share, not self._exact and near <= _ROUNDINGS * rounding

    def _declared_fakes(self, update: Update, seen: Sequence[Forward]) -> tuple[Batch, bool]:
        if self._estimator == "last":
            if update.made is not None:
                return (self._reference.as_fakes(update.made.output), *update.latents[1:]), True
            return self._reference.fakes(update.latents, update.generator, update, seen)
        if self._estimator == "fresh" and update.own_latents is not None:
            return self._reference.fakes(update.own_latents, update.weights["g"], update, seen)
        return self._reference.fakes(update.latents, update.updated, update, seen)

    def _other_inputs(self, asked: _Asked, got: Tensor) -> tuple[Fault, str] | None:
        """Whether the gradient is that of the declared loss on what D was really shown, real batch first."""
        update = asked.update
        shown = [one.given for one in asked.seen[update.since :] if one.role == "d"][:2]
        if len(shown) < 2 or any(
            a.shape != b.shape for a, b in zip(shown[0] + shown[1], update.real + asked.fakes, strict=False)
        ):
            return None
        scale = asked.step.scale or 1.0
        declared = self._reference.discriminator_gradient(update, shown[1], shown[0], asked.mix, asked.seen, scale)
        truth = _flat(declared)
        if _share(got - truth, truth) > self._tolerance:
            return None
        if not same(shown[0], update.real):
            return _EDITED
        return _OTHERS


_EDITED: tuple[Fault, str] = ("real batch edited", "D was shown a real batch that an earlier pass had edited in place")
_OTHERS: tuple[Fault, str] = ("other fakes", "D was shown other fakes than the declared ones")


def _done(asked: _Asked) -> tuple[Fault, str] | None:
    """What went wrong with a step, told by the passes alone."""
    if stale := _outdated(asked):
        return stale
    update = asked.update
    shown = [one.given for one in asked.seen[update.since :] if one.role == "d"]
    if update.player == "g" or not shown:
        return None
    if not any(same(given, update.real) for given in shown):
        return _EDITED
    return None if not asked.watched or any(same(given, asked.fakes) for given in shown) else _OTHERS


def _outdated(asked: _Asked) -> tuple[Fault, str] | None:
    """Whether a pass that an update's loss came from happened before a step that came before the update."""
    update, shown, made = asked.update, asked.fakes, None
    if update.player == "g":
        made = update.made
        if made is None:
            return None
        output = made.output
        # As D was shown it: in its own type, or in float32.
        shown = (output, *update.latents[1:])
        if scored_by(asked.seen, update, shown) is None:
            shown = (output.float(), *update.latents[1:])
    passes = [one for one in (made, scored_by(asked.seen, update, shown)) if one is not None]
    if any(one.age != update.ages[one.role] and one.weights is not update.weights[one.role] for one in passes):
        role = ROLES[update.player]
        return "stale", f"the {role}'s gradient went through weights that were changed after its forward pass"
    return None


def _declared(reference: Reference, asked: _Asked) -> list[Tensor]:
    update, scale = asked.update, asked.step.scale or 1.0
    if update.player == "g":
        return reference.generator_gradient(update, asked.seen, scale)
    return reference.discriminator_gradient(update, asked.fakes, update.real, asked.mix, asked.seen, scale)


def _finite(flat: Tensor) -> bool:
    return bool(torch.isfinite(flat).all())


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
