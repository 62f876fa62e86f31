"""Pairs of networks, shipped or a user's own. `build` gives (generator, discriminator) on the CPU,
from seeded weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ganbench.errors import DatasetError, UserCodeError
from ganbench.gan.models import dcgan, mlp, mlp2d
from ganbench.gan.models.output import Pick, picker
from ganbench.gan.models.user import initialise, user_network, user_pair
from ganbench.spec.model import DcganSpec, Mlp2dSpec, MlpSpec, UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed


def build(spec: RunSpec, shape: tuple[int, ...], *, on_probabilities: bool) -> tuple[nn.Module, nn.Module]:
    """Both networks for items of `shape`. Each draws its weights from a stream of its own, so that another
    generator never changes the discriminator's weights; those of a factory draw from one.

    Raises:
        UserCodeError: a user's file cannot be used.
        DatasetError: a shipped network is not made for items of that shape.
    """
    model = spec.model
    if isinstance(model, UserModelSpec) and model.factory is not None:
        with _seeded(spec, "both"):
            generator, discriminator = user_pair(model.factory, model.factory_args, model.argv)
            _initialise(model, generator, "generator")
            _initialise(model, discriminator, "discriminator")
        return generator, discriminator
    networks: list[nn.Module] = []
    for role in ("generator", "discriminator"):
        with _seeded(spec, role):
            network = _network(spec, role, shape, on_probabilities)
            if isinstance(model, UserModelSpec):
                _initialise(model, network, role)
            networks.append(network)
    generator, discriminator = networks
    return generator, discriminator


def outputs(spec: RunSpec) -> tuple[Pick | None, Pick | None]:
    """What makes one tensor of each network's output, generator first; None where it is one already.

    Raises:
        UserCodeError: a user's function cannot be loaded.
    """
    model = spec.model
    if not isinstance(model, UserModelSpec):
        return None, None
    asked = model.output
    return (
        picker(asked.generator, "generator", model.argv),
        picker(asked.discriminator, "discriminator", model.argv),
    )


def is_conditional(spec: RunSpec) -> bool:
    """Whether the networks are called with labels."""
    return isinstance(spec.model, UserModelSpec) and spec.model.conditional


@contextmanager
def _seeded(spec: RunSpec, role: str) -> Iterator[None]:
    # Module constructors draw from the global state: it is seeded for them and put back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(spec.seed, "weights", role))
        yield


def _initialise(model: UserModelSpec, network: nn.Module, role: str) -> None:
    if model.init is not None:
        initialise(network, model.init, role, model.argv)


def _fits(spec: RunSpec, shape: tuple[int, ...]) -> None:
    """Shipped networks and shipped data were compared in the spec; a user's data show their shape only now."""
    name, given = spec.model.name, f"dataset {spec.dataset.name} has items of shape {shape}"
    if name == "mlp2d" and shape != (2,):
        raise DatasetError(f"model mlp2d is made for points in the plane, shape (2,); {given}; use mlp, or your own")
    if name == "dcgan" and (len(shape) != 3 or shape[1] != shape[2] or shape[1] not in (28, 32, 64)):
        raise DatasetError(f"model dcgan is made for pictures of 28, 32 or 64 px; {given}; use mlp, or your own")


def _network(spec: RunSpec, role: str, shape: tuple[int, ...], on_probabilities: bool) -> nn.Module:
    model = spec.model
    generator = role == "generator"
    _fits(spec, shape)
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
        assert place is not None  # without a factory there are both
        return user_network(place, arguments, role, model.argv)
    raise UserCodeError(f"no such model: {model!r}")


__all__ = ["build", "is_conditional", "outputs"]
