"""A request to stop that wakes whoever waits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_TOGETHER = 0.5


class Stop:
    """Set once, by a signal or by hand. `fileno()` becomes readable, so that a wait on it returns."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self.requested = False

    def fileno(self) -> int:
        """For `select` and `multiprocessing.connection.wait`."""
        return self._reader

    def request(self) -> None:
        """Ask everyone to come to an end."""
        if not self.requested:
            self.requested = True
            with suppress(BlockingIOError):
                os.write(self._writer, b"x")

    @contextmanager
    def on_signals(self) -> Iterator[Stop]:
        """While inside, SIGINT and SIGTERM request the stop; a second SIGINT raises KeyboardInterrupt.

        Two that come together are one: some senders signal a process and then its whole group.
        """
        first = 0.0

        def handle(number: int, _frame: FrameType | None) -> None:
            nonlocal first
            if self.requested and number == signal.SIGINT and time.monotonic() - first > _TOGETHER:
                raise KeyboardInterrupt
            if not self.requested:
                first = time.monotonic()
            self.request()

        previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
