"""Where another's code runs while it loads: an empty folder of its own, a command line, and ears for what it prints."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

_KEPT = 4000
_MOST_FILES = 100
# `../../data` must stay inside too: the working folder lies this deep in the one that is removed.
_DEPTH = ("up4", "up3", "up2", "up1", "here")


@dataclass
class Left:
    """What it left behind: `prints`, its first characters, and its last line; `wrote`, path from its working folder →
    bytes."""

    prints: str = ""
    last_line: str = ""
    wrote: dict[str, int] = field(default_factory=dict)


@contextmanager
def scratch(argv: Sequence[str]) -> Iterator[Left]:
    """Run the block in an empty folder that is removed after it, with `argv` as `sys.argv` and its prints kept.

    The working folder, `sys.argv` and both streams are as before at the end. No byte code is written for what it
    imports, which lies in the author's folders.
    """
    left = Left()
    top = Path(tempfile.mkdtemp(prefix="ganbench-scratch-"))
    here = top.joinpath(*_DEPTH)
    here.mkdir(parents=True)
    ear = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)
    home, given, bytecode, keyboard = os.getcwd(), sys.argv, sys.dont_write_bytecode, sys.stdin
    try:
        os.chdir(here)
        sys.argv = list(argv)
        sys.dont_write_bytecode = True
        sys.stdin = io.StringIO()  # a question is an error, not a wait for ever
        with redirect_stdout(ear), redirect_stderr(ear):
            yield left
    finally:
        sys.argv, sys.dont_write_bytecode, sys.stdin = given, bytecode, keyboard
        os.chdir(home)
        text = _heard(ear)
        left.prints = text if len(text) <= _KEPT else f"{text[:_KEPT]}… ({len(text) - _KEPT} more characters)"
        left.last_line = text.strip().rpartition("\n")[2]
        left.wrote = _written(top, here)
        shutil.rmtree(top, ignore_errors=True)


def _heard(ear: io.TextIOWrapper) -> str:
    try:
        raw = ear.buffer
        return raw.getvalue().decode("utf-8", "replace") if isinstance(raw, io.BytesIO) else ""
    except ValueError:  # closed or detached by the file
        return ""


def _written(top: Path, here: Path) -> dict[str, int]:
    own = {here, *here.parents}
    found: dict[str, int] = {}
    for path in sorted(top.rglob("*")):
        if path in own or len(found) == _MOST_FILES:
            continue
        name = os.path.relpath(path, here)
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                found[f"{name}/"] = 0
        else:
            found[name] = path.lstat().st_size
    return found
