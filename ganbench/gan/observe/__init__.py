"""A user's own training step, run for a few rounds on copies of the networks under observation.

Nothing of the step is changed: what it does is seen by torch's public hooks, and what it means is concluded from that.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from ganbench.gan.data import Data
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.scratch import scratch
from ganbench.gan.foreign.switches import watched
from ganbench.gan.foreign.telling import told
from ganbench.gan.observe.arguments import Plan, plan_for
from ganbench.gan.observe.given import Given, given_of
from ganbench.gan.observe.lasting import host_waits, kept_alive, needless_retain, never_moves, not_a_number
from ganbench.gan.observe.observer import Observer
from ganbench.gan.observe.raised import raised
from ganbench.gan.observe.updates import Updates
from ganbench.record.finding import Finding, by_severity
from ganbench.record.loop import LoopSeen, RoundSeen
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed

ROUNDS = 6
# Warnings that observing brings about, where a step compiles something.
_OURS = ("global hooks on modules", "sys._getframe")


def observe_step(
    spec: RunSpec, data: Data, device: torch.device, place: str, rounds: int = ROUNDS, argv: Sequence[str] = ()
) -> LoopSeen:
    """Load the step that `place` names and observe it on an experiment's networks, in a scratch folder.

    Global switches, random states and warnings filters are as before at the end.

    Raises:
        UserCodeError: a user's file cannot be used, or the step wants something that is not known.
        DatasetError: networks that are called with labels, and data that have none.
    """
    step = named(place, "--loop", argv)
    given = given_of(spec, data, device)
    plan = plan_for(step, place, given.lacking)
    with watched() as switches, scratch([place.rpartition(":")[0], *argv]) as left:
        torch.manual_seed(derive_seed(spec.seed, "model noise"))
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("default")
            seen = observe(step, given, place, rounds, plan)
    set_here = [
        f"the step sets {name}: {before} → {now}"
        for name, (before, now) in switches.items()
        if not name.endswith("random state") and name != "warnings filters"
    ]
    wrote = [f"the step wrote {', '.join(list(left.wrote)[:5])} into its working folder"] if left.wrote else []
    texts = [" ".join(str(one.message).split()) for one in heard]
    said = dict.fromkeys(f"warned: {text[:200]}" for text in texts if not any(part in text for part in _OURS))
    return LoopSeen(seen.place, seen.asked, seen.rounds, seen.findings, (*set_here, *wrote, *list(said)[:5]))


def observe(
    step: Callable[..., Any], given: Given, place: str, rounds: int = ROUNDS, plan: Plan | None = None
) -> LoopSeen:
    """Call a step `rounds` times under observation, or until it raises.

    Raises:
        UserCodeError: it wants something that is not known.
    """
    plan = plan or plan_for(step, place, given.lacking)
    error: tuple[str, str, str] | None = None
    networks = {"G": given.generator, "D": given.discriminator}
    with Observer(networks, _file_of(step)) as observer:
        for number in range(rounds):
            values = given.for_round(number)
            real = [values[name] for name in ("real", "labels") if values[name] is not None]
            observer.begin_round([values["latents"]], real)
            try:
                plan.call(step, values)
            except (Exception, SystemExit) as one:  # noqa: BLE001 - what a user's step raises is looked for
                # Text only: the exception keeps its frames' tensors alive.
                line = " ".join(told(one, place.rpartition(":")[0]).split()).partition(" Hint: ")[0]
                error = (type(one).__name__, str(one), line[:300])
                break
            finally:
                values.clear()
            real.clear()
            observer.end_round()
    seen = observer.seen
    updates = Updates(seen)
    made = len(seen.alive_nodes) + (error is not None)
    rows = [
        RoundSeen(
            updates.of_round(number),
            {name: seen.forwards[number, name] for name in networks},
            sum(count for (where, _, _), count in seen.waits.items() if where == number),
            seen.alive_nodes[number] if number < len(seen.alive_nodes) else 0,
        )
        for number in range(made)
    ]

    def found() -> Iterator[Finding]:
        yield from updates.findings()
        yield from not_a_number(seen)
        if error is not None:
            yield from raised(seen, *error, rows)
        else:
            # What a step that was cut off had still to do is not known.
            yield from never_moves(seen, observer.weights.epochs, rounds)
            yield from kept_alive(seen, step)
            yield from needless_retain(seen)
        yield from host_waits(seen, given.device.type)

    return LoopSeen(place, rounds, tuple(rows), by_severity(found()))


def _file_of(step: Callable[..., Any]) -> str | None:
    while isinstance(step, partial):
        step = step.func
    function = inspect.unwrap(step)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code.co_filename if code is not None else None


__all__ = ["ROUNDS", "Given", "given_of", "observe", "observe_step"]
