"""How a sweep is shown while it runs: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ganbench.record.events import Ended
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict


class SweepDisplay:
    """A watcher of `run_sweep`. Use it as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._progress = Progress(
            TextColumn("[bold]{task.completed} of {task.total} runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[now]}"),
            console=console,
            disable=not self._live,
        )
        self._task: TaskID | None = None
        self._todo = self._done = 0
        self._begun = 0.0
        self._running: list[str] = []

    def __enter__(self) -> SweepDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def planned(self, todo: int, done: int) -> None:
        self._todo, self._begun = todo, time.monotonic()
        if todo == 0:
            self._console.print(f"all {done} runs are done; nothing to run (--retry or --fresh makes runs again)")
            return
        already = f", {done} are done already" if done else ""
        self._console.print(f"{todo} runs to make{already}")
        self._task = self._progress.add_task("", total=todo, left="", now="")

    def started(self, spec: RunSpec, label: str) -> None:  # noqa: ARG002
        self._running.append(label)
        self._show()

    def ended(self, spec: RunSpec, label: str, event: Ended) -> None:
        self._done += 1
        if label in self._running:
            self._running.remove(label)
        surprise = event.outcome is not Outcome.OK and spec.expected.verdict is not Verdict.RAISES
        if surprise or not self._live:
            why = f" ({event.found['error']})" if surprise and event.found.get("error") else ""
            line = f"[{self._done}/{self._todo}] {label}: {event.outcome}{why}{self._left()}"
            self._console.print(line, markup=False)
        self._show()

    def _left(self) -> str:
        if not 0 < self._done < self._todo:
            return ""
        seconds = (time.monotonic() - self._begun) / self._done * (self._todo - self._done)
        return f", about {duration(seconds)} left"

    def _show(self) -> None:
        if self._task is not None:
            self._progress.update(
                self._task, completed=self._done, left=self._left().lstrip(", "), now="; ".join(self._running)
            )


def duration(seconds: float) -> str:
    """A span of time in at most two units."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
