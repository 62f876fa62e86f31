"""A user's own network: `file.py:Name` or `package.module:Name`, called with its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.telling import told


def user_network(place: str, arguments: Mapping[str, Any], role: str, argv: Sequence[str] = ()) -> nn.Module:
    """Load and construct a network.

    Raises:
        UserCodeError: the file, the name or the constructor fails; the message names file, line and what was called.
    """
    maker = named(place, role, argv)
    where, _, name = place.rpartition(":")
    try:
        network = maker(**arguments)
    except (Exception, SystemExit) as error:
        listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise UserCodeError(f"{role}: {name}({listed}) of '{where}' raised {told(error, where)}") from error
    if not isinstance(network, nn.Module):
        raise UserCodeError(f"{role}: {name}(…) gave a {type(network).__name__}; a torch.nn.Module is needed")
    return network
