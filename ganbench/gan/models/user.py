"""A user's own networks: `file.py:Name` or `package.module:Name`, called with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.telling import asked_for, told


def user_network(place: str, arguments: Mapping[str, Any], role: str, argv: Sequence[str] = ()) -> nn.Module:
    """Load and construct a network.

    Raises:
        UserCodeError: the file, the name or the constructor fails; the message names file, line and what was called.
    """
    network = _made(place, arguments, role, argv)
    if not isinstance(network, nn.Module):
        name = place.rpartition(":")[2]
        raise UserCodeError(f"{role}: {name}(…) gave a {type(network).__name__}; a torch.nn.Module is needed")
    return network


def user_pair(place: str, arguments: Mapping[str, Any], argv: Sequence[str] = ()) -> tuple[nn.Module, nn.Module]:
    """Both networks from one call: a tuple (generator, discriminator), or an object with these as attributes or keys.

    Raises:
        UserCodeError: the file, the name or the call fails, or it gives something else.
    """
    made = _made(place, arguments, "factory", argv)
    pair: Any = made
    if isinstance(made, Mapping):
        pair = (made.get("generator"), made.get("discriminator"))
    elif not isinstance(made, tuple | list):
        pair = (getattr(made, "generator", None), getattr(made, "discriminator", None))
    if len(pair) != 2 or not all(isinstance(network, nn.Module) for network in pair):
        given = f"({', '.join(type(network).__name__ for network in pair)})" if made is pair else type(made).__name__
        name = place.rpartition(":")[2]
        raise UserCodeError(
            f"factory: {name}(…) gave {given}; it must give two torch.nn.Modules: (generator, discriminator)"
        )
    generator, discriminator = pair
    return generator, discriminator


def initialise(network: nn.Module, place: str, role: str, argv: Sequence[str] = ()) -> None:
    """Give a user's function to `network.apply`, as authors do with theirs for initial weights.

    Raises:
        UserCodeError: the file, the name or a call fails.
    """
    function: Callable[[nn.Module], Any] = named(place, "init", argv)
    where, _, name = place.rpartition(":")
    try:
        network.apply(function)
    except (Exception, SystemExit) as error:
        raise UserCodeError(f"init: {role}.apply({name}) of '{where}' raised {told(error, where)}") from error


def _made(place: str, arguments: Mapping[str, Any], role: str, argv: Sequence[str]) -> Any:
    maker = named(place, role, argv)
    where, _, name = place.rpartition(":")
    try:
        return maker(**arguments)
    except (Exception, SystemExit) as error:
        listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        hint = asked_for(maker, arguments, f"{role}_args")
        raise UserCodeError(f"{role}: {name}({listed}) of '{where}' raised {told(error, where)}{hint}") from error
