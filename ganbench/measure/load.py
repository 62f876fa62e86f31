"""Foreign load: what else used the cores while a run was timed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil

# Above so many cores' worth of foreign work a run counts as disturbed.
BOUND_CORES = 0.3


@dataclass(frozen=True)
class _Stamp:
    wall: float
    busy: float
    own: float


class LoadWatch:
    """Cores' worth of work that was neither this process's nor that of the ganbench that started it.

    The kernel's busy time over all cores, less the processor time of this process and of the parent that writes the
    records. Runs beside this one (`--jobs`) count as foreign: they do disturb.
    """

    def __init__(self) -> None:
        self._self = psutil.Process()
        self._parent = _ganbench()
        self._start = self._stamp()

    def foreign_cores(self) -> float | None:
        """The average since the start, in cores; None over a span too short for the kernel's counters."""
        now = self._stamp()
        wall = now.wall - self._start.wall
        if wall < 0.2:  # the counters tick a hundred times a second
            return None
        return max(0.0, (now.busy - self._start.busy - (now.own - self._start.own)) / wall)

    def _stamp(self) -> _Stamp:
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0) - _guest(times)
        own = sum(self._self.cpu_times()[:2])
        if self._parent is not None:
            try:
                own += sum(self._parent.cpu_times()[:2])
            except psutil.Error:
                self._parent = None
        return _Stamp(time.monotonic(), busy, own)


def _guest(times: object) -> float:
    """Guests' time, which the kernel counts in `user` and `nice` once more."""
    return float(getattr(times, "guest", 0.0)) + float(getattr(times, "guest_nice", 0.0))


def _ganbench() -> psutil.Process | None:
    """The process that started the fork server that this process comes from."""
    try:
        server = psutil.Process(os.getppid())
        return server.parent() if "forkserver" in " ".join(server.cmdline()) else server
    except psutil.Error:
        return None
