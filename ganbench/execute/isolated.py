"""One isolated process, forked from a warm server, with a pipe back to the parent."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

WARM = "ganbench.execute.warm"
_PR_SET_PDEATHSIG = 1
_OUTPUT_KEPT = 8000

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([WARM])


class Isolated:
    """`function(*arguments, send)` in a process of its own. `send(value)` brings a value to `receive()`.

    The process ignores Ctrl-C (its parent decides), dies with the fork server, and writes what it prints to a file.
    """

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._output = tempfile.NamedTemporaryFile(prefix="ganbench-", suffix=".out")  # noqa: SIM115 - closed in end()
        self._receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=_enter, args=(sender, self._output.name, function, arguments), daemon=False
        )
        self.started_at = time.time()
        warm_up()
        self._process.start()
        sender.close()

    @property
    def sources(self) -> list[Any]:
        """What to wait on: ready when a value is there or the process has ended. The end is watched by itself, since
        a process that a model started may hold the pipe open."""
        return [self._receiver, self._process.sentinel]

    def receive(self) -> list[Any] | None:
        """The values sent so far; None once the process has ended and all of them were handed out."""
        over = not self._process.is_alive()
        values: list[Any] = []
        try:
            while self._receiver.poll():
                values.append(self._receiver.recv())
        except (EOFError, OSError):
            over = True
        return None if over and not values else values

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """Wait for the process, free what it held; its exit code (negative: ended by that signal) and last output."""
        self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        self._receiver.close()
        with self._output:
            size = os.fstat(self._output.fileno()).st_size
            self._output.seek(max(0, size - _OUTPUT_KEPT))
            output = self._output.read().decode(errors="replace")
        return code, output


def _enter(sender: Connection, output: str, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.enable()
    function(*arguments, sender.send)
    sender.close()


def describe_exit(code: int) -> str:
    """What an exit code says, in words."""
    if code >= 0:
        return f"the process ended with exit code {code} before the run was over"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; the kernel's out-of-memory killer sends it" if -code == signal.SIGKILL else ""
    return f"the process was ended by {name}{hint}"


def warm_up() -> None:
    """Start the fork server, where it does not run already; it loads torch meanwhile.

    It starts with SIGINT blocked: Ctrl-C goes to the whole process group, and would end it amid an import.
    """
    from multiprocessing import forkserver

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
