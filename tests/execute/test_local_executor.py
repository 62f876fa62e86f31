"""The executor's contract: every run that started ends exactly once, whatever its process does."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator

import performers
import psutil
import pytest

from ganbench.errors import DatasetError
from ganbench.execute.local import LocalExecutor
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended, Event, Rows, Started, Task
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec


def tasks(*seeds: int, timeout: float | None = None) -> list[Task]:
    return [Task(RunSpec(seed=seed), position, timeout) for position, seed in enumerate(seeds)]


def by_run(events: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        found[event.run_key].append(event)
    return found


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_run_starts_tells_in_order_and_ends_once(jobs: int) -> None:
    asked = tasks(0, 1, 2, 5)
    found = by_run(list(LocalExecutor(jobs, perform=performers.counts).run(asked)))
    assert set(found) == {task.run_key for task in asked}
    for task in asked:
        events = found[task.run_key]
        assert isinstance(events[0], Started)
        rows = [event.columns["step"][0] for event in events if isinstance(event, Rows)]
        assert rows == list(range(1, task.spec.seed + 1))
        ended = [event for event in events if isinstance(event, Ended)]
        assert ended == [events[-1]]
        assert ended[0].outcome is Outcome.OK
        assert ended[0].found["counters"]["pid"] != os.getpid()


def test_runs_start_in_the_order_given() -> None:
    asked = tasks(4, 0, 3)
    started = [e.run_key for e in LocalExecutor(1, perform=performers.counts).run(asked) if isinstance(e, Started)]
    assert started == [task.run_key for task in asked]


def test_a_process_that_dies_is_a_crash_and_the_others_go_on() -> None:
    asked = tasks(0, 1, 2, 3, 4, 6)
    found = by_run(list(LocalExecutor(2, perform=performers.troubled).run(asked)))
    ends = {task.spec.seed: found[task.run_key][-1] for task in asked}
    assert all(isinstance(end, Ended) for end in ends.values())
    outcomes = {seed: end.outcome for seed, end in ends.items() if isinstance(end, Ended)}
    assert outcomes == {
        0: Outcome.OK,
        1: Outcome.CRASHED,
        2: Outcome.CRASHED,
        3: Outcome.CRASHED,
        4: Outcome.CRASHED,
        6: Outcome.OK,
    }
    texts = {seed: end.found.get("error", "") for seed, end in ends.items() if isinstance(end, Ended)}
    assert "exit code 7" in texts[1]
    assert "SIGKILL" in texts[2]
    assert "exit code 1" in texts[3]
    assert isinstance(ends[3], Ended)
    assert "not caught by anyone" in ends[3].found["traceback"]
    for task in asked:  # what was told before the death is not lost
        assert any(isinstance(event, Rows) for event in found[task.run_key])


def test_a_run_over_its_time_is_ended() -> None:
    asked = tasks(7, timeout=0.5) + tasks(0)
    found = by_run(list(LocalExecutor(1, perform=performers.sleeps).run(asked)))
    end = found[asked[0].run_key][-1]
    assert isinstance(end, Ended)
    assert end.outcome is Outcome.TIMED_OUT
    assert "0.5 s" in end.found["error"]
    assert isinstance(found[asked[1].run_key][-1], Ended)


def test_a_stop_ends_what_runs_as_interrupted_and_starts_nothing_more() -> None:
    stop = Stop()
    asked = tasks(1, 2, 3)
    events: list[Event] = []
    for event in LocalExecutor(2, stop, performers.sleeps).run(asked):
        events.append(event)
        if isinstance(event, Rows):
            threading.Timer(0.2, stop.request).start()
    found = by_run(events)
    assert asked[2].run_key not in found
    for task in asked[:2]:
        end = found[task.run_key][-1]
        assert isinstance(end, Ended)
        assert end.outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_may_be_made_from_what_ended_before(jobs: int) -> None:
    """Three at the beginning; each that ends brings one more until there were eight. None: nothing for now."""
    ended: list[str] = []
    made: list[Task] = []

    def asked() -> Iterator[Task | None]:
        while len(made) < 8:
            if len(made) < 3 + len(ended):
                made.append(Task(RunSpec(seed=len(made)), len(made)))
                yield made[-1]
            else:
                yield None

    for event in LocalExecutor(jobs, perform=performers.counts).run(asked()):
        if isinstance(event, Ended):
            ended.append(event.run_key)
    assert sorted(ended) == sorted(task.run_key for task in made)
    assert len(ended) == 8


def test_a_cancelled_run_ends_as_interrupted_and_the_others_go_on() -> None:
    asked = tasks(1, 0, 0)
    executor = LocalExecutor(1, perform=performers.sleeps)
    events: list[Event] = []
    for event in executor.run(asked):
        events.append(event)
        if isinstance(event, Rows) and event.run_key == asked[0].run_key:
            executor.cancel(event.run_key, "pruned: 3rd of 4")
            executor.cancel("no such run", "nothing happens")
    end = by_run(events)[asked[0].run_key][-1]
    assert isinstance(end, Ended)
    assert end.outcome is Outcome.INTERRUPTED
    assert end.found["error"] == "pruned: 3rd of 4"
    assert [e.outcome for e in events if isinstance(e, Ended)] == [Outcome.INTERRUPTED, Outcome.OK, Outcome.OK]


def test_leaving_the_stream_early_leaves_no_process_behind() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    stream = LocalExecutor(2, perform=performers.sleeps).run(tasks(1, 2))
    next(stream)
    next(stream)
    stream.close()
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    commands = [" ".join(child.cmdline()) for child in left]
    assert [c for c in commands if "forkserver" not in c and "resource_tracker" not in c] == []


def test_ask_brings_back_an_answer_an_error_or_none() -> None:
    executor = LocalExecutor()
    assert executor.ask(performers.answers, 41) == 42
    with pytest.raises(DatasetError, match="no pictures there"):
        executor.ask(performers.refuses, "no pictures there")
    assert executor.ask(performers.dies) is None
