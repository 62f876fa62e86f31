"""The write-ahead log: every event of a run is on disk before it is sent anywhere.

One file a run, one JSON line an event, each with a checksum. A file is removed once the tracking store holds all of
it; what is left in the folder is what the store has missed.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ganbench.errors import StoreError
from ganbench.record.events import Ended, Event, Picture, Rows, Started
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec

# 1: first version.
LOG_VERSION = 1


@dataclass(frozen=True)
class Header:
    """Which run a log is about, and for which store."""

    attempt: str
    experiment: str
    sweep: str
    position: int
    tracking_uri: str
    label: str
    spec: RunSpec


class RunLog:
    """The log of one attempt at a run, opened for writing."""

    def __init__(self, folder: Path, header: Header) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{header.spec.run_key}-{header.attempt}.jsonl"
        self._file: TextIO = self.path.open("x", encoding="utf-8")
        plain = {**header.__dict__, "spec": header.spec.model_dump(mode="json")}
        self._write({"log": LOG_VERSION, **plain})

    def append(self, event: Event) -> None:
        """Write an event and hand it to the operating system; the end of a run is forced to the disk."""
        self._write(_plain(event))
        if isinstance(event, Ended):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; it stays until it is removed."""
        self._file.close()

    def _write(self, plain: dict[str, Any]) -> None:
        text = json.dumps(plain, separators=(",", ":"))
        self._file.write(f"{zlib.crc32(text.encode()):08x} {text}\n")
        self._file.flush()


def new_attempt() -> str:
    """A name for one attempt at a run."""
    return uuid.uuid4().hex[:12]


def read_log(path: Path) -> tuple[Header, list[Event], int]:
    """A log's header, its events, and how many lines were damaged and left out.

    Raises:
        StoreError: the header itself is damaged or of another version.
    """
    lines = list(_lines(path))
    whole = [line for line in lines if line is not None]
    if not whole or whole[0].get("log") != LOG_VERSION:
        raise StoreError(f"'{path}' has no readable head of version {LOG_VERSION}; move it away to go on without it")
    head = {key: value for key, value in whole[0].items() if key != "log"}
    header = Header(**{**head, "spec": RunSpec.model_validate(head["spec"])})
    key = header.spec.run_key
    return header, [_event(plain, key) for plain in whole[1:]], len(lines) - len(whole)


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    with path.open("rb") as file:
        for raw in file:
            checksum, _, text = raw.rstrip(b"\n").partition(b" ")
            if raw.endswith(b"\n") and checksum == f"{zlib.crc32(text):08x}".encode():
                yield json.loads(text)
            else:
                yield None


def _plain(event: Event) -> dict[str, Any]:
    match event:
        case Started():
            return {"event": "started", "at": event.at}
        case Rows():
            return {"event": "rows", "columns": event.columns}
        case Picture():
            return {"event": "picture", "step": event.step, "png": base64.b64encode(event.png).decode()}
        case Ended():
            return {"event": "ended", "outcome": event.outcome, "at": event.at, "found": event.found}


def _event(plain: dict[str, Any], key: str) -> Event:
    match plain["event"]:
        case "started":
            return Started(key, plain["at"])
        case "rows":
            return Rows(key, plain["columns"])
        case "picture":
            return Picture(key, plain["step"], base64.b64decode(plain["png"]))
        case "ended":
            return Ended(key, Outcome(plain["outcome"]), plain["at"], plain["found"])
        case other:
            raise StoreError(f"unknown event '{other}' in a log; it was written by a newer ganbench")
