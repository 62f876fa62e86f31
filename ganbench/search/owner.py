"""Which process holds a trial, and whether it still lives: by ask and tell, Optuna itself does not watch over that."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Owner:
    """A process on a host. `host` holds the boot and the process namespace as well, so that process numbers of two
    containers, or of before and after a restart, are never taken for each other's."""

    host: str
    pid: int
    started: str
    id: str

    @classmethod
    def here(cls) -> Owner:
        """This process; every call gives another `id`."""
        return cls(_host(), os.getpid(), started_at(os.getpid()) or "", uuid.uuid4().hex)

    @classmethod
    def read(cls, plain: Any) -> Owner | None:
        """From what was stored; None where that is no owner."""
        if not isinstance(plain, Mapping) or set(plain) != {"host", "pid", "started", "id"}:
            return None
        return cls(str(plain["host"]), int(plain["pid"]), str(plain["started"]), str(plain["id"]))

    def plain(self) -> dict[str, Any]:
        """For the store."""
        return asdict(self)

    def lives(self, heartbeat: float, now: float, grace: float) -> bool:
        """On this host: whether the process is there. From elsewhere: whether its last heartbeat (Unix seconds, as is
        `now`) is no older than `grace` seconds."""
        if self.host == _host():
            return started_at(self.pid) == self.started
        return now - heartbeat <= grace


def started_at(pid: int) -> str | None:
    """When a process was started, as text that no other process of that number has; None where there is none."""
    try:
        # Ticks since the boot: unlike a time of day, no change of the clock moves them.
        stat = Path(f"/proc/{pid}/stat").read_text()
        state, *rest = stat.rpartition(")")[2].split()
        return None if state in "ZX" else rest[18]
    except OSError:
        pass
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except psutil.Error:
        return None


def _host() -> str:
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:  # no Linux: the name alone
        pass
    return " ".join(parts)
