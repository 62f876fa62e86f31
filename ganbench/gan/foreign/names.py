"""What a place names: `file.py:Name` or `package.module:Name` → the object."""

from __future__ import annotations

import difflib
import importlib
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.folders import in_reach
from ganbench.gan.foreign.scratch import scratch
from ganbench.gan.foreign.script import defined, load
from ganbench.gan.foreign.switches import watched
from ganbench.gan.foreign.telling import told
from ganbench.record.loading import Loaded

_PACKAGES: dict[str, Loaded] = {}


def named(place: str, role: str, argv: Sequence[str] = ()) -> Any:
    """The object that `file.py:Name` or `package.module:Name` names.

    A file that is a training script is run only as far as the name needs (`slicing` has the rules), in a scratch
    folder that is removed again, with its prints kept and the process's global switches put back.

    Args:
        place: where it is.
        role: what it is to be (generator, loss, …); errors begin with it.
        argv: the file's command line, without the file's own name.

    Raises:
        UserCodeError: there is no such file or name, or loading it fails; the message names file and line.
    """
    return _found(place, role, argv)[0]


def loading(place: str, role: str, argv: Sequence[str] = ()) -> Loaded:
    """How that object's file was loaded: what was run, printed, written, set. It is loaded if it was not yet.

    Raises:
        UserCodeError: as `named`.
    """
    return _found(place, role, argv)[1]


def _found(place: str, role: str, argv: Sequence[str]) -> tuple[Any, Loaded]:
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise UserCodeError(f"{role}: write file.py:Name or package.module:Name, got '{place}'")
    is_file = where.endswith(".py")
    module, record = load(where, name, role, argv) if is_file else _imported(where, role, argv)
    if hasattr(module, name):
        return getattr(module, name), record
    classes = {n for n, v in vars(module).items() if isinstance(v, type) and n[0] != "_"}
    own = defined(where) if is_file else []
    classes |= {n for n in own if not n.startswith("_") and n[0].isupper()}
    near = difflib.get_close_matches(name, sorted(classes | set(own)), n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UserCodeError(
        f"{role}: '{where}' has no '{name}'; {hint}its classes are {', '.join(sorted(classes)) or 'none'}"
    )


def _imported(where: str, role: str, argv: Sequence[str]) -> tuple[ModuleType, Loaded]:
    """A package's module is imported whole, in the same surroundings as a file."""
    if where in sys.modules:
        return sys.modules[where], _PACKAGES.get(where, Loaded(file=where))
    given = tuple(map(str, argv))
    begin = time.perf_counter()
    try:
        with in_reach(), watched() as switches, scratch([where, *given]) as left:
            module = importlib.import_module(where)
    except (Exception, SystemExit) as error:  # a script that reads its command line exits on ganbench's
        raise UserCodeError(f"{role}: loading '{where}' raised {told(error, where)}") from error
    _PACKAGES[where] = Loaded(
        file=where,
        argv=given,
        prints=left.prints,
        wrote=left.wrote,
        switches=switches,
        seconds=time.perf_counter() - begin,
    )
    return module, _PACKAGES[where]
