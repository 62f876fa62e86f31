"""A loss that is a finite number, made of scores and targets of one shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ganbench.gan.check.layers import listed
from ganbench.gan.check.parts import Parts
from ganbench.gan.check.ranges import takes_probabilities
from ganbench.record.finding import Finding


def loss_is_a_number(parts: Parts) -> Iterator[Finding]:
    """Each part of the loss gives one number, without pairing every score with every other."""
    if takes_probabilities(parts.loss, parts.scores(parts.real(parts.probe))):
        # Whether it gets them is another check's; a refusal of logits is no fault of the loss.
        of_real, of_fakes = (torch.sigmoid(scores) for scores in _scores(parts))
    else:
        of_real, of_fakes = _scores(parts)
    looks: list[tuple[str, Callable[..., Tensor], tuple[Tensor, ...]]] = [
        ("generator", parts.loss.generator, (of_fakes,))
    ]
    if parts.loss.in_parts:
        looks += [("real", parts.loss.real, (of_real,)), ("fake", parts.loss.fake, (of_fakes,))]
    else:
        looks.append(("discriminator", lambda *both: parts.loss.discriminator(*both)[0], (of_real, of_fakes)))
    for name, part, scores in looks:
        found = list(_looked_at(parts, name, part, scores))
        yield from found
        if found:
            return


def _scores(parts: Parts) -> tuple[Tensor, Tensor]:
    return parts.scores(parts.real(parts.probe)), parts.scores(parts.fakes())


def _looked_at(parts: Parts, name: str, part: Callable[..., Tensor], scores: tuple[Tensor, ...]) -> Iterator[Finding]:
    watch = _Broadcasts(scores[0].numel())
    given = f"{name}({', '.join(f'scores of shape {tuple(one.shape)}' for one in scores)})"
    try:
        with warnings.catch_warnings(record=True) as warned, watch:
            warnings.simplefilter("always")
            value = part(*scores)
    except Exception as error:  # noqa: BLE001 - whatever a user's loss raises is what is looked for
        yield Finding(
            "loss-raises",
            "error",
            f"the loss does not take the discriminator's scores: its part '{name}' raises",
            f"{given}: {parts.told('loss', error)}",
            "make targets from the scores: torch.ones_like(scores); probabilities need a discriminator that ends in "
            "a Sigmoid",
        )
        return
    if not isinstance(value, Tensor) or value.numel() != 1:
        shape = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        yield Finding(
            "loss-not-scalar",
            "error",
            f"the loss's part '{name}' gives no single number",
            f"{given} gave {shape}",
            "end it in .mean()",
        )
        return
    told = [str(warning.message).splitlines()[0] for warning in warned if "target size" in str(warning.message)]
    if told or watch.seen:
        yield Finding(
            "loss-broadcasts",
            "warning",
            "the loss pairs every score with every target: scores and targets differ in shape, and broadcast",
            f"{given}: {listed([*watch.seen, *told], 2)}",
            "make targets from the scores: torch.ones_like(scores), or squeeze the scores to the targets' shape",
        )


class _Broadcasts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operations that make N × N numbers of N scores and N others, which are not of one shape."""

    def __init__(self, count: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []
        self._count = count

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = [arg for arg in args if isinstance(arg, Tensor)]
        apart = len({arg.shape for arg in given}) > 1 and len(given) == 2
        if apart and isinstance(made, Tensor) and made.numel() == self._count**2 > 1:
            name = str(func).split(".")[1]
            if name not in ("mm", "bmm", "matmul") and all(arg.numel() == self._count for arg in given):
                self.seen.append(f"{name} of {tuple(given[0].shape)} and {tuple(given[1].shape)}")
        return made
