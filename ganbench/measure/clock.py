"""Clocks that split a window of training into named segments.

A training loop calls `start`, then `mark(segment)` after each piece of work, then `stop`. Only `start` and
`stop` wait for the device; `mark` appends one time stamp. Times are whole nanoseconds. What lies between the
last mark and `stop` belongs to no segment, so the last piece of work needs its own mark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch


class Clock(Protocol):
    """What a training loop needs of a clock.

    Every clock keeps this contract: segments come back in the order of the marks, a name may come many times,
    a window that was opened but not stopped is thrown away by the next `start`, and a mark outside a window
    is dropped.
    """

    def start(self) -> None:
        """Wait for the device and open a window. Throws away a window that was never stopped."""

    def mark(self, segment: str) -> None:
        """Give the time since the previous mark, or since `start`, to `segment`. Never waits."""

    def stop(self) -> list[tuple[str, int]]:
        """Wait for the device, close the window and return its (segment, nanoseconds) pairs in order.

        Raises:
            RuntimeError: no window is open.
        """


class DeviceEvent(Protocol):
    """The part of `torch.cuda.Event` that `CudaClock` needs."""

    def record(self) -> None:
        """Put a time stamp into the device's queue, behind the work already there."""

    def elapsed_time(self, end: DeviceEvent, /) -> float:
        """Milliseconds from this event to `end`. Both must have been reached by the device."""


class NullClock:
    """A clock for rounds that are not timed: ignores marks, needs no window, finds no segments."""

    def start(self) -> None:
        """Do nothing."""

    def mark(self, segment: str) -> None:
        """Do nothing."""

    def stop(self) -> list[tuple[str, int]]:
        """Return an empty list, whether or not `start` was called."""
        return []


class CpuClock:
    """Host time, for devices that have finished an operation when its call returns.

    Args:
        reader: returns the present time in nanoseconds; must never go back.
    """

    def __init__(self, reader: Callable[[], int] = time.perf_counter_ns) -> None:
        self._reader = reader
        self._open = False
        self._segments: list[str] = []
        self._stamps: list[int] = []

    def start(self) -> None:
        """Open a window at the present time."""
        self._segments = []
        self._open = True
        self._stamps = [self._reader()]

    def mark(self, segment: str) -> None:
        """Take one time stamp for `segment`."""
        if self._open:
            self._stamps.append(self._reader())
            self._segments.append(segment)

    def stop(self) -> list[tuple[str, int]]:
        """Close the window and return its (segment, nanoseconds) pairs.

        Raises:
            RuntimeError: no window is open.
        """
        if not self._open:
            raise _no_window()
        self._open = False
        return [
            (segment, end - begin)
            for segment, begin, end in zip(self._segments, self._stamps, self._stamps[1:], strict=False)
        ]


class CudaClock:
    """Device time: one event per mark on the device's current stream, read after one synchronisation.

    Events are kept and used again in later windows, so that only the first window pays for making them.
    Neighbouring events are compared, never distant ones: CUDA gives milliseconds as a 32-bit float with steps
    of about half a microsecond, which is exact enough only over short spans. Making a clock does not
    initialise CUDA; `start` does.

    Args:
        device: a CUDA device; without an index, the one that is current at each call.
        make_event: makes an event; by default a timing `torch.cuda.Event` for `device`.
        synchronize: waits until all work queued so far is done; by default `torch.cuda.synchronize(device)`.
    """

    def __init__(
        self,
        device: torch.device,
        make_event: Callable[[], DeviceEvent] | None = None,
        synchronize: Callable[[], None] | None = None,
    ) -> None:
        self._make_event = make_event or (lambda: _StreamEvent(device))
        self._synchronize = synchronize or (lambda: torch.cuda.synchronize(device))
        self._open = False
        self._segments: list[str] = []
        self._events: list[DeviceEvent] = []

    def start(self) -> None:
        """Wait for the device, then record the first event."""
        self._segments = []
        self._open = True
        self._synchronize()
        self._record(0)

    def mark(self, segment: str) -> None:
        """Record one event for `segment`."""
        if self._open:
            self._segments.append(segment)
            self._record(len(self._segments))

    def stop(self) -> list[tuple[str, int]]:
        """Wait once for the device, close the window and return its (segment, nanoseconds) pairs.

        Raises:
            RuntimeError: no window is open.
        """
        if not self._open:
            raise _no_window()
        self._open = False
        self._synchronize()
        return [
            (segment, round(begin.elapsed_time(end) * 1e6))
            for segment, begin, end in zip(self._segments, self._events, self._events[1:], strict=False)
        ]

    def _record(self, index: int) -> None:
        if index == len(self._events):
            self._events.append(self._make_event())
        self._events[index].record()


class _StreamEvent:
    """A `torch.cuda.Event` recorded on `device`'s current stream, which need not be the current device's."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def record(self) -> None:
        self._event.record(torch.cuda.current_stream(self._device))

    def elapsed_time(self, end: DeviceEvent, /) -> float:
        if not isinstance(end, _StreamEvent):
            raise TypeError(f"an event is compared with one of its own kind, got {type(end).__name__}")
        return float(self._event.elapsed_time(end._event))


def clock_for(device: torch.device) -> Clock:
    """The clock that tells the truth about `device`.

    Raises:
        ValueError: no clock is known for this kind of device; a host clock would time the queueing, not the
            work.
    """
    if device.type == "cpu":
        return CpuClock()
    if device.type == "cuda":
        return CudaClock(device)
    raise ValueError(f"a clock exists for devices of type cpu and cuda, got {str(device)!r}")


def _no_window() -> RuntimeError:
    return RuntimeError("stop() closes a window that start() opened, but none is open")
