"""Every clock keeps one contract; each then has a few facts of its own. No test asserts a duration."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from ganbench.measure import Clock, CpuClock, CudaClock, DeviceEvent, NullClock, clock_for


class FakeDevice:
    """A device that works through its queue only when synchronised; each event lies one step later."""

    def __init__(self, step_ns: int = 1_000) -> None:
        self.step_ns = step_ns
        self.log: list[str] = []
        self.events: list[FakeEvent] = []
        self.queue: list[FakeEvent] = []
        self.now_ns = 0

    def make_event(self) -> FakeEvent:
        event = FakeEvent(self, len(self.events))
        self.events.append(event)
        return event

    def synchronize(self) -> None:
        self.log.append("synchronize")
        for event in self.queue:
            self.now_ns += self.step_ns
            event.reached_ns = self.now_ns
        self.queue.clear()

    def work(self) -> None:
        self.log.append("work")


class FakeEvent:
    def __init__(self, device: FakeDevice, index: int) -> None:
        self.device = device
        self.index = index
        self.reached_ns: int | None = None

    def record(self) -> None:
        self.device.log.append(f"record {self.index}")
        self.reached_ns = None
        self.device.queue.append(self)

    def elapsed_time(self, end: DeviceEvent, /) -> float:
        assert isinstance(end, FakeEvent)
        assert self.reached_ns is not None, "read before the device reached it"
        assert end.reached_ns is not None, "read before the device reached it"
        self.device.log.append(f"convert {self.index} {end.index}")
        return (end.reached_ns - self.reached_ns) / 1e6


def cpu_clock() -> Clock:
    return CpuClock(itertools.count(5_000_000, 1_000).__next__)


def fake_cuda_clock() -> Clock:
    device = FakeDevice()
    return CudaClock(torch.device("cuda"), device.make_event, device.synchronize)


def real_cuda_clock() -> Clock:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to record events on")
    return CudaClock(torch.device("cuda"))


@pytest.fixture(
    params=[
        pytest.param(cpu_clock, id="cpu"),
        pytest.param(CpuClock, id="cpu-real"),
        pytest.param(fake_cuda_clock, id="cuda-fake"),
        pytest.param(real_cuda_clock, id="cuda-real", marks=pytest.mark.cuda),
    ]
)
def clock(request: pytest.FixtureRequest) -> Clock:
    make: Callable[[], Clock] = request.param
    return make()


class TestEveryTimingClock:
    def test_segments_come_back_in_the_order_of_the_marks(self, clock: Clock) -> None:
        clock.start()
        for segment in ("d", "d", "g", "d"):
            clock.mark(segment)
        assert [segment for segment, _ in clock.stop()] == ["d", "d", "g", "d"]

    def test_times_are_whole_nanoseconds_and_never_negative(self, clock: Clock) -> None:
        clock.start()
        clock.mark("g")
        clock.mark("d")
        for _, elapsed in clock.stop():
            assert type(elapsed) is int
            assert elapsed >= 0

    def test_a_window_without_marks_is_empty(self, clock: Clock) -> None:
        clock.start()
        assert clock.stop() == []

    def test_windows_do_not_mix(self, clock: Clock) -> None:
        clock.start()
        clock.mark("first")
        first = clock.stop()
        kept = list(first)
        clock.start()
        clock.mark("second")
        clock.mark("third")
        assert [segment for segment, _ in clock.stop()] == ["second", "third"]
        assert first == kept

    def test_start_throws_away_a_window_that_was_never_stopped(self, clock: Clock) -> None:
        clock.start()
        clock.mark("lost")
        clock.start()
        clock.mark("kept")
        assert [segment for segment, _ in clock.stop()] == ["kept"]

    def test_marks_outside_a_window_are_dropped(self, clock: Clock) -> None:
        clock.mark("before")
        clock.start()
        clock.mark("inside")
        clock.stop()
        clock.mark("between")
        clock.start()
        assert clock.stop() == []

    def test_stop_needs_a_window(self, clock: Clock) -> None:
        with pytest.raises(RuntimeError, match="none is open"):
            clock.stop()
        clock.start()
        clock.stop()
        with pytest.raises(RuntimeError, match="none is open"):
            clock.stop()


def test_cpu_clock_gives_the_differences_between_neighbouring_readings() -> None:
    readings = iter([100, 130, 131, 200])
    clock = CpuClock(lambda: next(readings))
    clock.start()
    clock.mark("g")
    clock.mark("d")
    clock.mark("d")
    assert clock.stop() == [("g", 30), ("d", 1), ("d", 69)]
    assert next(readings, None) is None


def test_cuda_clock_waits_only_at_start_and_stop_and_converts_each_span_once() -> None:
    device = FakeDevice(step_ns=1_500)
    clock = CudaClock(torch.device("cuda"), device.make_event, device.synchronize)
    clock.start()
    device.work()
    clock.mark("g")
    device.work()
    clock.mark("d")
    assert clock.stop() == [("g", 1_500), ("d", 1_500)]
    assert device.log == [
        *("synchronize", "record 0", "work", "record 1", "work", "record 2", "synchronize"),
        *("convert 0 1", "convert 1 2"),
    ]


def test_cuda_clock_uses_its_events_again_in_later_windows() -> None:
    device = FakeDevice()
    clock = CudaClock(torch.device("cuda"), device.make_event, device.synchronize)
    for marks in (3, 1, 4):
        clock.start()
        for _ in range(marks):
            clock.mark("g")
        assert clock.stop() == [("g", 1_000)] * marks
    assert len(device.events) == 5


def test_a_cuda_clock_is_made_without_initialising_cuda() -> None:
    before = torch.cuda.is_initialized()
    CudaClock(torch.device("cuda", 3))
    assert torch.cuda.is_initialized() == before


@pytest.mark.cuda
def test_cuda_segments_add_up_to_no_more_than_the_host_time_around_them() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to record events on")
    device = torch.device("cuda")
    outer, inner = CpuClock(), CudaClock(device)
    work = torch.ones(512, 512, device=device)
    outer.start()
    inner.start()
    for _ in range(4):
        work = work @ work
        inner.mark("matmul")
    parts = inner.stop()
    outer.mark("all")
    # Two clocks: 0.1 % and 10 microseconds for their rates and resolution.
    assert 0 < sum(elapsed for _, elapsed in parts) <= outer.stop()[0][1] * 1.001 + 10_000


def test_null_clock_needs_no_window_and_finds_nothing() -> None:
    clock: Clock = NullClock()
    assert clock.stop() == []
    clock.start()
    clock.mark("g")
    assert clock.stop() == []


def test_clock_for_knows_the_device_kinds_it_can_time() -> None:
    assert isinstance(clock_for(torch.device("cpu")), CpuClock)
    assert isinstance(clock_for(torch.device("cuda:0")), CudaClock)
    with pytest.raises(ValueError, match=r"type cpu and cuda, got 'meta'"):
        clock_for(torch.device("meta"))
