"""What computing gradients that nobody uses costs in time: rounds of their own, with and without.

torch's floor is imported inside the functions: the parent imports this package too, and never loads torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ganbench.gan.session import Session
    from ganbench.gan.trainer import WindowClock

PAIRS = 3
PHASES = ("g", "d")


def discarded_time(session: Session, clock: WindowClock, pairs: int = PAIRS) -> dict[str, float]:
    """For each phase (`g`, `d`) the share of its time, optimizer steps included, that goes into gradients which are
    discarded: 1 - (median time without computing them) / (median time as it is), from `pairs` pairs of rounds in
    alternating order. May come out below 0 by the machine's noise.

    Without: every backward pass is confined to its own network's parameters, which leaves each update's own gradients
    the same. The session must have played a round; its networks train on.
    """
    times: dict[bool, list[dict[str, int]]] = {False: [], True: []}
    for n in range(pairs):
        for confined in (False, True) if n % 2 == 0 else (True, False):
            with _confined(session, confined):
                times[confined].append(_round(session, clock))
    shares = {}
    for phase in PHASES:
        whole, without = (median(row[phase] for row in times[confined]) for confined in (False, True))
        shares[phase] = 1 - without / whole if whole else 0.0
    return shares


@contextmanager
def _confined(session: Session, confined: bool) -> Iterator[None]:
    players = (session.pair.g, session.pair.d)
    for player in players:
        player.confined = confined
    try:
        yield
    finally:
        for player in players:
            player.confined = False


def _round(session: Session, clock: WindowClock) -> dict[str, int]:
    """Nanoseconds of one round's phases."""
    from ganbench.gan.pair import unmarked

    pair = session.pair
    pair.mark = clock.mark
    clock.start()
    try:
        session.play_round()
    finally:
        pair.mark = unmarked
        segments = clock.stop()
        pair.notes.clear()
    return {phase: sum(ns for name, ns in segments if name in (phase, f"{phase}_step")) for phase in PHASES}
