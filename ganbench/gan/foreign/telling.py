"""An error that another's code raised, in one line: its type, its line in the file that was named, its message."""

from __future__ import annotations

import traceback
from pathlib import Path


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


def _is_file_of(where: str, filename: str) -> bool:
    # More than the last name: torch and ganbench have files named linear.py, module.py and user.py themselves.
    if where.endswith(".py"):
        return filename == str(Path(where).resolve())
    path = where.replace(".", "/")
    return Path(filename).as_posix().endswith((f"/{path}.py", f"/{path}/__init__.py"))
