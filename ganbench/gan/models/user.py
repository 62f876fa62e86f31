"""A user's own network: `file.py:Name` or `package.module:Name`, called with its arguments."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from ganbench.errors import UserCodeError


def user_network(place: str, arguments: Mapping[str, Any], role: str) -> nn.Module:
    """Load and construct a network.

    Raises:
        UserCodeError: the file, the name or the constructor fails; the message names file, line and what was called.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise UserCodeError(f"{role}: write file.py:Name or package.module:Name, got '{place}'")
    module = _module(where, role)
    if not hasattr(module, name):
        known = ", ".join(sorted(n for n, v in vars(module).items() if isinstance(v, type) and n[0] != "_"))
        raise UserCodeError(f"{role}: '{where}' has no '{name}'; its classes are {known or 'none'}")
    try:
        network = getattr(module, name)(**arguments)
    except (Exception, SystemExit) as error:
        told = _told(error, where)
        raise UserCodeError(f"{role}: {name}({_listed(arguments)}) of '{where}' raised {told}") from error
    if not isinstance(network, nn.Module):
        raise UserCodeError(f"{role}: {name}(…) gave a {type(network).__name__}; a torch.nn.Module is needed")
    return network


def _module(where: str, role: str) -> ModuleType:
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
        try:
            spec.loader.exec_module(module)
        except BaseException:
            # Half a module left there would be taken for a loaded one next time, and hide the reason.
            sys.modules.pop(name, None)
            raise
        finally:
            sys.path.remove(str(path.parent))
        return module
    except UserCodeError:
        raise
    except (Exception, SystemExit) as error:  # a script that reads its command line exits on ganbench's
        raise UserCodeError(f"{role}: loading '{where}' raised {_told(error, where)}") from error


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items())


def _told(error: BaseException, where: str) -> str:
    if isinstance(error, SyntaxError):
        file = "" if _is_file_of(where, error.filename or "") else f" of {error.filename}"
        return f"SyntaxError at line {error.lineno}{file}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_file_of(where, f.filename)]
    line = f" at line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{line}: {error}"


def _is_file_of(where: str, filename: str) -> bool:
    # More than the last name: torch and ganbench have files named linear.py, module.py and user.py themselves.
    if where.endswith(".py"):
        return filename == str(Path(where).resolve())
    path = where.replace(".", "/")
    return Path(filename).as_posix().endswith((f"/{path}.py", f"/{path}/__init__.py"))
