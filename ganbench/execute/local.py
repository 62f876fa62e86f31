"""Runs in isolated processes on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from typing import Any, TypeVar

from ganbench.errors import ErrorKind, UsageError
from ganbench.execute import work
from ganbench.execute.isolated import Isolated, describe_exit, warm_up
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended, Event, Started, Task
from ganbench.record.outcome import Outcome

Answer = TypeVar("Answer")
Perform = Callable[[Task, float, Callable[[Event], None]], None]


class LocalExecutor:
    """Makes runs in processes of their own, at most `jobs` at a time. A process's death is that run's outcome.

    `perform` is what a process does with its task; tests give others.
    """

    def __init__(self, jobs: int = 1, stop: Stop | None = None, perform: Perform = work.perform) -> None:
        self.jobs = jobs
        self._stop = stop or Stop()
        self._perform = perform
        self._running: list[_Running] = []

    def warm_up(self) -> None:
        """Start loading what runs need, without waiting for it."""
        warm_up()

    def run(self, tasks: Iterable[Task | None]) -> Iterator[Event]:
        """Make the runs in order; every one that started ends with exactly one `Ended`.

        A task is taken when there is room for it, so that `tasks` may make it from the events handed on before; None
        says that there is none until something more has ended. When a stop is requested, running processes are ended
        as `interrupted` and no further ones started.
        """
        waiting = iter(tasks)
        running = self._running
        try:
            while True:
                while len(running) < self.jobs and not self._stop.requested and (task := next(waiting, None)):
                    running.append(_Running(task, self._perform))
                    yield Started(task.run_key, running[-1].child.started_at)
                if self._stop.requested:
                    for run in running:
                        run.kill(Outcome.INTERRUPTED, "interrupted by the user")
                if not running:
                    return
                self._wait(running)
                for run in list(running):
                    yield from run.events()
                    if run.over:
                        running.remove(run)
        finally:
            for run in running:
                run.child.kill()
                run.child.end()
            running.clear()

    def cancel(self, run_key: str, why: str) -> None:
        """End a run that is going on, as `interrupted`. Its `Ended` follows among the events, what it told stays."""
        for run in self._running:
            if run.task.run_key == run_key:
                run.kill(Outcome.INTERRUPTED, why)

    def _wait(self, running: list[_Running]) -> None:
        """Block until something happens: an event, a death, a deadline, a stop."""
        deadlines = [run.deadline for run in running if run.deadline is not None]
        longest = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        sources: list[Any] = [source for run in running for source in run.child.sources]
        if not self._stop.requested:
            sources.append(self._stop)
        wait(sources, longest)
        for run in running:
            if run.deadline is not None and time.monotonic() >= run.deadline:
                run.kill(Outcome.TIMED_OUT, f"not finished after {run.task.timeout:g} s (--timeout)")

    def ask(self, function: Callable[..., Answer], *arguments: Any, timeout: float = 600.0) -> Answer | None:
        """`function(*arguments)` in a process of its own; None where that process died or hung.

        Raises:
            UsageError: the function raised one.
            KeyboardInterrupt: a stop was requested meanwhile.
        """
        child = Isolated(_answer, function, arguments)
        ended = time.monotonic() + timeout
        answers: list[Any] = []
        try:
            while (values := child.receive()) is not None and time.monotonic() < ended:
                answers += values
                if self._stop.requested:
                    raise KeyboardInterrupt
                if not values:
                    sources: list[Any] = [*child.sources, self._stop]
                    wait(sources, max(0.0, ended - time.monotonic()))
        finally:
            child.kill()
            child.end()
        if answers and isinstance(answers[-1], UsageError):
            raise answers[-1]
        return answers[-1] if answers else None


def _answer(function: Callable[..., object], arguments: tuple[Any, ...], send: Callable[[object], None]) -> None:
    try:
        send(function(*arguments))
    except UsageError as error:
        send(type(error)(str(error)))  # without its cause and frames, which need not survive the way


class _Running:
    """A run in its process."""

    def __init__(self, task: Task, perform: Perform) -> None:
        self.task = task
        self.child = Isolated(perform, task, time.time())
        self.deadline = time.monotonic() + task.timeout if task.timeout is not None else None
        self.over = False
        self._killed_as: tuple[Outcome, str] | None = None
        self._ended: Ended | None = None

    def kill(self, outcome: Outcome, why: str) -> None:
        if self._killed_as is None:
            self._killed_as = (outcome, why)
            self.deadline = None
            self.child.kill()

    def events(self) -> Iterator[Event]:
        """What came since the last call; `Ended` as soon as the process is gone."""
        values = self.child.receive()
        for value in values or ():
            if isinstance(value, Ended):
                self._ended = value
            else:
                yield value
        if values is None:
            self.over = True
            code, output = self.child.end()
            yield self._finish(code, output)

    def _finish(self, code: int, output: str) -> Ended:
        if self._ended is not None:
            found = {**self._ended.found, "output": output}
            return Ended(self.task.run_key, self._ended.outcome, self._ended.at, found)
        outcome, why = self._killed_as or (Outcome.CRASHED, describe_exit(code))
        found = {"error": why, "error_kind": ErrorKind.OTHER, "output": output}
        if output.strip():
            found["traceback"] = output  # a segfault's stack, or an uncaught exception's
        return Ended(self.task.run_key, outcome, time.time(), found)
