"""Shipped pairs of networks by name. `build` gives (generator, discriminator) on the CPU, from seeded weights."""

from __future__ import annotations

import torch
from torch import nn

from ganbench.errors import UserCodeError
from ganbench.gan.models import dcgan, mlp, mlp2d
from ganbench.gan.models.user import user_network
from ganbench.spec.model import DcganSpec, Mlp2dSpec, MlpSpec, UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed


def build(spec: RunSpec, shape: tuple[int, ...], *, on_probabilities: bool) -> tuple[nn.Module, nn.Module]:
    """Both networks for items of `shape`. Each draws its weights from a stream of its own, so that another
    generator never changes the discriminator's weights.

    Raises:
        UserCodeError: a user's file cannot be used.
    """
    networks: list[nn.Module] = []
    for role in ("generator", "discriminator"):
        # Module constructors draw from the global state: it is seeded for them and put back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(spec.seed, "weights", role))
            networks.append(_network(spec, role, shape, on_probabilities))
    generator, discriminator = networks
    return generator, discriminator


def _network(spec: RunSpec, role: str, shape: tuple[int, ...], on_probabilities: bool) -> nn.Module:
    model = spec.model
    generator = role == "generator"
    if isinstance(model, MlpSpec):
        return (
            mlp.Generator(model, spec.latent.dim, shape)
            if generator
            else mlp.Discriminator(model, shape, on_probabilities)
        )
    if isinstance(model, Mlp2dSpec):
        return mlp2d.Generator(model, spec.latent.dim) if generator else mlp2d.Discriminator(model, on_probabilities)
    if isinstance(model, DcganSpec):
        return (
            dcgan.Generator(model, spec.latent.dim, shape)
            if generator
            else dcgan.Discriminator(model, shape, on_probabilities)
        )
    if isinstance(model, UserModelSpec):
        place = model.generator if generator else model.discriminator
        arguments = model.generator_args if generator else model.discriminator_args
        return user_network(place, arguments, role)
    raise UserCodeError(f"no such model: {model!r}")


__all__ = ["build"]
