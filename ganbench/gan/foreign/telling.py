"""An error that another's code raised, in one line: its type, its line in the file that was named, its message."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def told(error: BaseException, where: str) -> str:
    """`ValueError at line 7: no width 3`; `where` is the file or the package.module that was named.

    The line is the innermost one of that file. A syntax error elsewhere (in what it imports) names its own file.
    """
    if isinstance(error, SyntaxError):
        file = "" if _is_file_of(where, error.filename or "") else f" of {error.filename}"
        return f"SyntaxError at line {error.lineno}{file}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_file_of(where, f.filename)]
    line = f" at line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{line}: {error}"


def asked_for(maker: Any, arguments: Mapping[str, Any], key: str) -> str:
    """` (line 12; it takes latent_dim, width=3: give them as generator_args)` for arguments that do not fit what is
    called; '' where they fit, or where Python cannot tell. `key` names what they are given with."""
    try:
        signature = inspect.signature(maker)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(**arguments)
    except TypeError:
        code = getattr(getattr(maker, "__init__", maker) if isinstance(maker, type) else maker, "__code__", None)
        line = f"line {code.co_firstlineno}; " if code is not None else ""
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        takes = ", ".join(map(str, plain)) or "nothing"
        return f" ({line}it takes {takes}: give them as {key})"
    return ""


def _is_file_of(where: str, filename: str) -> bool:
    # More than the last name: torch and ganbench have files named linear.py, module.py and user.py themselves.
    if where.endswith(".py"):
        return filename == str(Path(where).resolve())
    path = where.replace(".", "/")
    return Path(filename).as_posix().endswith((f"/{path}.py", f"/{path}/__init__.py"))
