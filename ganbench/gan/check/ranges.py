"""Value ranges: of fakes against real data, and of scores against what the loss reads."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ganbench.gan.check.batches import in_place_of, tensor_of
from ganbench.gan.check.operations import Interval, bounds, operation, spread
from ganbench.gan.check.parts import Parts
from ganbench.gan.losses import AdversarialLoss
from ganbench.record.finding import Finding

# Real items read for the range of data that does not state one.
_SAMPLE = 512
# Shares of the data's span: what a generator need not reach, and how far beyond the data its range may go.
_MISSED, _BEYOND = 0.05, 0.25
# A loss that a perfect discriminator cannot get below by more than this is a floor.
_FLOOR = 0.01


def fakes_cover_the_data(parts: Parts) -> Iterator[Finding]:
    """The values that a generator's last operation can give are those of the data."""
    data = parts.value_range or spread(tensor_of(parts.real(_SAMPLE)))
    fakes = tensor_of(parts.fakes())
    last = operation(fakes)
    reached, seen = bounds(last), spread(fakes)
    if reached is None:
        # Judged by what it gives, latents a thousand times as large included.
        wide = spread(tensor_of(parts.pair.generate(_enlarged(parts.latents(parts.probe)))))
        reached = (0.0 if min(seen[0], wide[0]) >= 0 else -math.inf, math.inf)
        how = f"no value of {2 * parts.probe} fakes is negative"
    else:
        how = f"its last operation is {last}"
    low, high = reached
    span = data[1] - data[0]
    missing = max(low - data[0], data[1] - high)
    beyond = max((side for side in (data[0] - low, high - data[1]) if math.isfinite(side)), default=0.0)
    if missing <= _MISSED * span and beyond <= _BEYOND * span:
        return
    consequence = (
        "it can never give some of the data's values"
        if missing > _MISSED * span
        else "values beyond the data's give fakes away, by their sign alone where the data has one sign"
    )
    yield Finding(
        "range-differs",
        "warning",
        f"the generator gives values in {_interval((low, high))}, the data lies in {_interval(data)}: {consequence}",
        f"{how}; fakes seen in {_interval(seen)}",
        "end the generator in the data's range, or give the data the generator's: "
        "dataset.range: [-1, 1] for a Tanh, [0, 1] for a Sigmoid",
    )


def data_keeps_its_range(parts: Parts) -> Iterator[Finding]:
    """Real items lie in the range that is stated for them."""
    if parts.value_range is None:
        return
    low, high = parts.value_range
    seen, slack = spread(tensor_of(parts.real(_SAMPLE))), 0.01 * (high - low)
    if seen[0] < low - slack or seen[1] > high + slack:
        yield Finding(
            "data-outside-range",
            "warning",
            "real items do not lie in the range stated for them, to which fakes are clamped when they are judged",
            f"stated {_interval((low, high))}, seen {_interval(seen)}",
            "state the range that the data has: dataset.range",
        )


def scores_suit_the_loss(parts: Parts) -> Iterator[Finding]:
    """A loss on logits gets logits, one on probabilities gets probabilities."""
    of_real, of_fakes = parts.scores(parts.real(parts.probe)), parts.scores(parts.fakes().detach())
    last = operation(of_real)
    seen, reached = spread(torch.cat([of_real.flatten(), of_fakes.flatten()])), bounds(last)
    if takes_probabilities(parts.loss, of_real):
        unbounded = reached is not None and not (reached[0] >= 0 and reached[1] <= 1)
        if seen[0] < 0 or seen[1] > 1 or unbounded:
            yield _logits_into_probabilities(seen, last)
        return
    if reached is None:
        # Made by operations without a known range, such as a sigmoid written out: judged by what it gives, items a
        # thousand times as large included.
        wide = spread(parts.scores(_enlarged(parts.real(parts.probe))))
        inside = min(seen[0], wide[0]) >= 0 and max(seen[1], wide[1]) <= 1
        reached = (0.0, 1.0) if inside else None
    if reached is not None and math.isfinite(reached[0]) and math.isfinite(reached[1]):
        yield from _bounded_scores(parts.loss, of_real, reached, seen, last)


def takes_probabilities(loss: AdversarialLoss, like: Tensor) -> bool:
    """True where a loss has a finite value for scores in [0, 1], and none, or a refusal, for others."""
    return _has_value(loss, like, 0.5) and not _has_value(loss, like, 1.5)


@torch.no_grad()
def _has_value(loss: AdversarialLoss, like: Tensor, score: float) -> bool:
    scores = torch.full_like(like, score)
    try:
        return bool(torch.isfinite(loss.discriminator(scores, scores)[0]).all())
    except Exception:  # noqa: BLE001 - a refusal of any kind
        return False


def _logits_into_probabilities(seen: Interval, last: str) -> Finding:
    made = f", made by {last}" if last else ""
    return Finding(
        "logits-into-probabilities",
        "error",
        "the loss reads probabilities, the discriminator gives logits",
        f"scores in {_interval(seen)}{made}",
        "end the discriminator in a Sigmoid, or choose the loss on logits: loss: bce",
    )


@torch.no_grad()
def _bounded_scores(
    loss: AdversarialLoss, like: Tensor, reached: Interval, seen: Interval, last: str
) -> Iterator[Finding]:
    """Scores that cannot leave an interval, in a loss whose least values lie outside of it."""
    best, least = (
        loss.discriminator(torch.full_like(like, high), torch.full_like(like, low))
        for low, high in (reached, (-30.0, 30.0))
    )
    if float(best[0] - least[0]) <= _FLOOR:
        return
    whole, on_real, on_fakes = (None if value is None else float(value) for value in best)
    cost = f"{whole:.3f}" if on_real is None else f"{on_real:.3f} on real items and {on_fakes:.3f} on fakes"
    name = "tanh" if last == "Tanh" else "sigmoid"
    yield Finding(
        f"{name}-into-logits",
        "warning",
        f"the loss reads scores of any size, the discriminator's cannot leave {_interval(reached)}",
        f"scores in {_interval(seen)}{f', made by {last}' if last else ''}; perfect scores cost {cost}, "
        "and training goes on silently above that floor",
        f"leave the {name} at the discriminator's end out" + (", or set loss: bce_prob" if name == "sigmoid" else ""),
    )


def _enlarged(given: Tensor) -> Tensor:
    return in_place_of(given, tensor_of(given) * 1000)


def _interval(interval: Interval) -> str:
    low, high = (f"{end:.4g}" for end in interval)
    return f"[{low}, {high}]"
