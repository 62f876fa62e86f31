"""What a place names: `file.py:Name` or `package.module:Name` → the object."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.telling import told


def named(place: str, role: str, argv: Sequence[str] = ()) -> Any:
    """The object that `file.py:Name` or `package.module:Name` names.

    Args:
        place: where it is.
        role: what it is to be (generator, loss, …); errors begin with it.
        argv: the file's command line, without the file's own name.

    Raises:
        UserCodeError: there is no such file or name, or loading it fails; the message names file and line.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise UserCodeError(f"{role}: write file.py:Name or package.module:Name, got '{place}'")
    module = _module(where, role, argv)
    if not hasattr(module, name):
        known = ", ".join(sorted(n for n, v in vars(module).items() if isinstance(v, type) and n[0] != "_"))
        raise UserCodeError(f"{role}: '{where}' has no '{name}'; its classes are {known or 'none'}")
    return getattr(module, name)


def _module(where: str, role: str, argv: Sequence[str]) -> ModuleType:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where).resolve()
        if not path.is_file():
            raise UserCodeError(f"{role}: no file '{where}'")
        name = f"ganbench_user_{path.stem}"
        if (loaded := sys.modules.get(name)) is not None and loaded.__file__ == str(path):
            return loaded
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UserCodeError(f"{role}: '{where}' is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        sys.path.insert(0, str(path.parent))
        given, sys.argv = sys.argv, [str(path), *argv] if argv else sys.argv
        try:
            spec.loader.exec_module(module)
        except BaseException:
            # Half a module left there would be taken for a loaded one next time, and hide the reason.
            sys.modules.pop(name, None)
            raise
        finally:
            sys.argv = given
            sys.path.remove(str(path.parent))
        return module
    except UserCodeError:
        raise
    except (Exception, SystemExit) as error:  # a script that reads its command line exits on ganbench's
        raise UserCodeError(f"{role}: loading '{where}' raised {told(error, where)}") from error
