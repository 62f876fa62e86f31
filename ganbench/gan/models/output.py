"""Which part of a network's output counts, where it gives more than one tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.telling import told
from ganbench.spec.place import is_place

Pick = Callable[[Any], Tensor]


def picker(output: int | str | None, role: str, argv: Sequence[str] = ()) -> Pick | None:
    """From what the network gives to the tensor that is meant; None where nothing was asked for.

    `output` is the position in a tuple or list, a key or an attribute, or the place of a user's own function. A plain
    tensor is taken as it is, so that one position may stand for both networks.

    Raises:
        UserCodeError: the user's function cannot be loaded; when called, that the output has no such part.
    """
    if output is None:
        return None
    if is_place(output):
        return _adapter(str(output), role, argv)

    def pick(made: Any) -> Tensor:
        return made if isinstance(made, Tensor) else _part(made, output, role)

    return pick


def _adapter(place: str, role: str, argv: Sequence[str]) -> Pick:
    function = named(place, f"output.{role}", argv)
    where, _, name = place.rpartition(":")

    def pick(made: Any) -> Tensor:
        try:
            part = function(made)
        except Exception as error:
            given = f"{name}({_shown(made)}) of '{where}'"
            raise UserCodeError(f"output.{role}: {given} raised {told(error, where)}") from error
        if not isinstance(part, Tensor):
            raise UserCodeError(f"output.{role}: {name}(…) gave {_shown(part)}; a tensor is needed")
        return part

    return pick


def _part(made: Any, output: int | str, role: str) -> Tensor:
    part: Any = None
    if isinstance(made, Mapping):
        part = made.get(output)
    elif isinstance(output, str):
        part = getattr(made, output, None)
    elif isinstance(made, tuple | list) and -len(made) <= output < len(made):
        part = made[output]
    if not isinstance(part, Tensor):
        raise UserCodeError(
            f"output.{role}: there is no tensor at {output!r} of {_shown(made)}, which the {role} gives"
        )
    return part


def a_tensor(made: Any, role: str) -> Tensor:
    """What a network gives, if it is one tensor.

    Raises:
        UserCodeError: it is something else.
    """
    if not isinstance(made, Tensor):
        raise UserCodeError(
            f"{role}: it gives {_shown(made)}, one tensor is needed; say which part counts, such as "
            f"output: {{{role}: 0}}, or name a function of yours: output: {{{role}: file.py:first}}"
        )
    return made


def _shown(made: Any) -> str:
    """`a tuple of (Tensor (8, 1), NoneType)`."""
    if isinstance(made, Tensor):
        return f"a tensor of shape {tuple(made.shape)}"
    if isinstance(made, Mapping):
        return f"a mapping with {', '.join(repr(key) for key in made)}"
    if isinstance(made, tuple | list):
        inside = [f"Tensor {tuple(one.shape)}" if isinstance(one, Tensor) else type(one).__name__ for one in made]
        return f"a {type(made).__name__} of ({', '.join(inside)})"
    return f"a {type(made).__name__}"
