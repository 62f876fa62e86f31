"""What `benchmarks.startup` does in a run's own process. Apart from it, so that the process loads nothing else."""

from __future__ import annotations

import time

from ganbench.execute import work
from ganbench.record.events import Event, Task
from ganbench.spec.run import RunSpec


class _Reached(BaseException):
    """Leaves a run where its first round would begin."""


def until_first_round(spec: RunSpec, submitted: float) -> float:
    """Everything that comes before a run's first round; seconds since it was submitted."""
    from ganbench.gan.session import Session

    def stop(_: Session) -> None:
        raise _Reached

    def ignore(_: Event) -> None:
        """Nobody listens."""

    Session.play_round = stop  # type: ignore[method-assign]
    try:
        work.perform(Task(spec, 0), submitted, ignore)
    except _Reached:
        return time.time() - submitted
    raise RuntimeError("the run ended before its first round")
