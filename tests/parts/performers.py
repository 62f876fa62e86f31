"""What executors' processes do in tests, in place of training."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from ganbench.record.events import Ended, Event, Rows, Task
from ganbench.record.outcome import Outcome

Tell = Callable[[Event], None]


def counts(task: Task, _submitted: float, tell: Tell) -> None:
    """Tells as many rows as its seed and ends well."""
    for step in range(1, task.spec.seed + 1):
        tell(Rows(task.run_key, {"step": [step], "seconds": [0.0]}))
    tell(Ended(task.run_key, Outcome.OK, time.time(), {"counters": {"pid": os.getpid()}}))


def troubled(task: Task, _submitted: float, tell: Tell) -> None:
    """Seed 1 exits, 2 is killed, 3 raises, 4 sends nothing, others end well."""
    tell(Rows(task.run_key, {"step": [1], "seconds": [0.0]}))
    if task.spec.seed == 1:
        os._exit(7)
    if task.spec.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if task.spec.seed == 3:
        raise ValueError("not caught by anyone")
    if task.spec.seed == 4:
        return
    tell(Ended(task.run_key, Outcome.OK, time.time()))


def sleeps(task: Task, _submitted: float, tell: Tell) -> None:
    """Seed 0 ends at once, others sleep for an hour."""
    tell(Rows(task.run_key, {"step": [1], "seconds": [0.0]}))
    if task.spec.seed:
        time.sleep(3600)
    tell(Ended(task.run_key, Outcome.OK, time.time()))


def answers(question: int) -> int:
    """An answer for `ask`."""
    return question + 1


def refuses(text: str) -> None:
    """Raises a usage error."""
    from ganbench.errors import DatasetError

    raise DatasetError(text)


def dies() -> None:
    """Ends its process."""
    os._exit(9)
