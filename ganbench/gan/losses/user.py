"""A user's own loss: an object for both players, a pair of functions, or a criterion of scores and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.telling import told
from ganbench.gan.losses.base import AdversarialLoss
from ganbench.spec.loss import UserLossSpec

_NEEDED = ("generator", "discriminator")


class UserLoss(AdversarialLoss):
    """`g_loss(fake_scores)` and `d_loss(real_scores, fake_scores)`; the latter is one number, not one for each side."""

    in_parts = False

    def __init__(
        self, g_loss: Callable[[Tensor], Any], d_loss: Callable[[Tensor, Tensor], Any], *, on_probabilities: bool
    ) -> None:
        self._g_loss = g_loss
        self._d_loss = d_loss
        self.on_probabilities = on_probabilities

    def generator(self, fake_scores: Tensor) -> Tensor:
        return _number(self._g_loss(fake_scores), "generator")

    def real(self, real_scores: Tensor) -> Tensor:
        raise NotImplementedError("this loss has no part of its own for real items; see in_parts")

    def fake(self, fake_scores: Tensor) -> Tensor:
        raise NotImplementedError("this loss has no part of its own for fakes; see in_parts")

    def discriminator(self, real_scores: Tensor, fake_scores: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return _number(self._d_loss(real_scores, fake_scores), "discriminator"), None, None


class Criterion(AdversarialLoss):
    """A loss module of scores and targets, such as `nn.BCELoss()`: targets are 1 for real items and 0 for fakes, and
    G draws its fakes to 1."""

    def __init__(self, criterion: nn.Module, *, on_probabilities: bool) -> None:
        self.criterion = criterion
        self.on_probabilities = on_probabilities

    def generator(self, fake_scores: Tensor) -> Tensor:
        return _number(self.criterion(fake_scores, torch.ones_like(fake_scores)), "generator")

    def real(self, real_scores: Tensor) -> Tensor:
        return _number(self.criterion(real_scores, torch.ones_like(real_scores)), "discriminator")

    def fake(self, fake_scores: Tensor) -> Tensor:
        return _number(self.criterion(fake_scores, torch.zeros_like(fake_scores)), "discriminator")


def user_loss(spec: UserLossSpec) -> AdversarialLoss:
    """Load a user's loss.

    Raises:
        UserCodeError: a file or name cannot be used, or what it names is no loss.
    """
    if spec.place is None:
        places = {"generator": str(spec.generator), "discriminator": str(spec.discriminator)}
        functions = {role: named(place, f"loss.{role}", spec.argv) for role, place in places.items()}
        for role, function in functions.items():
            if not callable(function):
                raise UserCodeError(
                    f"loss.{role}: '{places[role]}' is a {type(function).__name__}; a function of scores is needed"
                )
        return UserLoss(functions["generator"], functions["discriminator"], on_probabilities=spec.on_probabilities)
    return _whole(spec, spec.place)


def _whole(spec: UserLossSpec, place: str) -> AdversarialLoss:
    found = named(place, "loss", spec.argv)
    if isinstance(found, type) or (callable(found) and not _is_loss(found)):
        found = _called(found, place, spec.args)
    elif spec.args:
        raise UserCodeError(f"loss: '{place}' is made already, and takes no args")
    if _is_whole(found):
        flag = spec.on_probabilities or getattr(found, "on_probabilities", False) is True
        return UserLoss(found.generator, found.discriminator, on_probabilities=flag)
    if isinstance(found, nn.modules.loss._Loss):
        return Criterion(found, on_probabilities=spec.on_probabilities or isinstance(found, nn.BCELoss))
    raise UserCodeError(
        f"loss: '{place}' gives a {type(found).__name__}; a loss has generator(fake_scores) and "
        "discriminator(real_scores, fake_scores). For two functions write "
        "{generator: file.py:a, discriminator: file.py:b}"
    )


def _called(maker: Callable[..., Any], place: str, args: dict[str, Any]) -> Any:
    where, _, name = place.rpartition(":")
    try:
        return maker(**args)
    except (Exception, SystemExit) as error:
        listed = ", ".join(f"{key}={value!r}" for key, value in args.items())
        raise UserCodeError(
            f"loss: {name}({listed}) of '{where}' raised {told(error, where)}. A function of scores alone is half a "
            f"loss: write {{generator: file.py:a, discriminator: file.py:b}}"
        ) from error


def _is_loss(found: object) -> bool:
    return _is_whole(found) or isinstance(found, nn.modules.loss._Loss)


def _is_whole(found: object) -> bool:
    return all(callable(getattr(found, name, None)) for name in _NEEDED)


def _number(value: Any, role: str) -> Tensor:
    """One number, as a tensor without dimensions.

    Raises:
        UserCodeError: it is something else.
    """
    if not isinstance(value, Tensor) or value.numel() != 1:
        given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise UserCodeError(f"loss: the {role}'s loss is one number as a tensor, got {given}; end it in .mean()")
    return value if value.dim() == 0 else value.reshape(())
