"""What a step's parameters are given, by their names.

Case and underscores in names do not count: `netG`, `net_g` and `NetG` are one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ganbench.errors import UserCodeError

# What is given → the names that ask for it, as people write them; `docs/bring-your-own.md` lists them.
# Not `real_labels` and the like: for many these are ones, and no classes.
NAMES: Mapping[str, tuple[str, ...]] = {
    "generator": ("G", "generator", "gen", "netG", "G_net", "model_G", "gen_model"),
    "discriminator": ("D", "discriminator", "disc", "dis", "critic", "netD", "D_net", "netC", "model_D", "disc_model"),
    "g_optimizer": (
        "opt_g", "g_opt", "optG", "optim_g", "g_optim", "optimizer_G", "G_optimizer", "opt_gen", "gen_opt",
        "optimizer_gen", "gen_optimizer", "optimizer_generator", "generator_optimizer", "G_solver",
    ),
    "d_optimizer": (
        "opt_d", "d_opt", "optD", "optim_d", "d_optim", "optimizer_D", "D_optimizer", "opt_disc", "disc_opt",
        "optimizer_disc", "disc_optimizer", "optimizer_discriminator", "discriminator_optimizer", "D_solver",
        "opt_critic", "critic_opt", "optimizer_critic", "critic_optimizer",
    ),
    "real": (
        "real", "reals", "real_imgs", "real_images", "real_img", "real_data", "real_batch", "real_samples", "real_x",
        "x_real", "imgs", "images", "img", "data", "batch", "x",
    ),
    "labels": ("labels", "y", "classes"),
    "latents": ("z", "noise", "latents", "latent", "latent_vectors", "fixed_noise", "z_noise"),
    "latent_dim": ("latent_dim", "latent_size", "z_dim", "nz", "noise_dim"),
    "batch_size": ("batch_size", "bs", "b_size", "n"),
    "device": ("device", "dev"),
    "criterion": (
        "criterion", "loss", "loss_fn", "loss_function", "loss_func", "adversarial_loss", "adv_loss", "bce",
        "bce_loss", "gan_loss", "criterion_gan",
    ),
    "round": (
        "round", "i", "it", "iter", "iteration", "step", "step_number", "global_step", "batches_done", "batch_idx",
        "n_iter", "iteration_number", "idx",
    ),
}  # fmt: skip


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_ROLES = {_plain(name): role for role, names in NAMES.items() for name in names}


@dataclass(frozen=True)
class Plan:
    """What a step is to be called with: (parameter, what it is given, whether by position)."""

    parts: tuple[tuple[str, str, bool], ...]

    @property
    def wanted(self) -> set[str]:
        """What is given to any parameter."""
        return {role for _, role, _ in self.parts}

    def call(self, step: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """Call the step."""
        positional = [values[role] for _, role, by_position in self.parts if by_position]
        return step(*positional, **{name: values[role] for name, role, by_position in self.parts if not by_position})


def plan_for(step: Any, place: str, lacking: Mapping[str, str]) -> Plan:
    """How to call the step that `place` names.

    Args:
        lacking: what this experiment has not → why.

    Raises:
        UserCodeError: it is no function that can be called so; the message lists the names that are known.
    """
    where, _, name = place.rpartition(":")
    if isinstance(step, type) or not callable(step):
        kind = "a class" if isinstance(step, type) else f"of type {type(step).__name__}"
        raise UserCodeError(f"--loop: '{place}' is {kind}; a function step(G, D, opt_g, opt_d, real, …) is needed")
    function = inspect.unwrap(step)
    called = type(function).__call__ if not hasattr(function, "__code__") else function
    if inspect.isgeneratorfunction(called) or inspect.iscoroutinefunction(called):
        raise UserCodeError(f"--loop: {name} of '{where}' yields or awaits; a plain function of one round is needed")
    try:
        parameters = inspect.signature(step).parameters.values()
    except ValueError as error:
        raise UserCodeError(f"--loop: the parameters of {name} of '{where}' cannot be read") from error
    parts = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        role = _ROLES.get(_plain(parameter.name))
        if role is None or role in lacking:
            if parameter.default is not parameter.empty:
                continue
            if role is None:
                known = "; ".join(", ".join(names) for names in NAMES.values())
                raise UserCodeError(
                    f"--loop: {name} of '{where}' wants '{parameter.name}', which is not known; give it a default, or "
                    f"one of these names (case and underscores do not count): {known}"
                )
            raise UserCodeError(f"--loop: {name} of '{where}' wants '{parameter.name}', but {lacking[role]}")
        parts.append((parameter.name, role, parameter.kind is parameter.POSITIONAL_ONLY))
    return Plan(tuple(parts))
