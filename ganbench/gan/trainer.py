"""The one training loop: windows of rounds between evaluations, with the clock running inside windows only."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from ganbench.gan.pair import Note, unmarked
from ganbench.gan.player import Player
from ganbench.gan.session import Session
from ganbench.record.curves import Columns, CurveTable
from ganbench.spec.budget import Budget

# Gradient norms are read in one round of so many; that round is in no figure.
PROBE_EVERY = 25


class WindowClock(Protocol):
    """Times the segments of a window of rounds."""

    def start(self) -> None:
        """Open a window."""

    def mark(self, segment: str) -> None:
        """What passed since the last mark belongs to the segment."""

    def stop(self) -> list[tuple[str, int]]:
        """Close the window; each segment with its nanoseconds, in order."""


@dataclass
class Progress:
    """How far a run has come, and its raw times: a list of (segment, nanoseconds) for each round."""

    counters: dict[str, float] = field(
        default_factory=lambda: {
            "rounds": 0, "g_updates": 0, "d_updates": 0, "real_images": 0, "seconds": 0.0
        }
    )  # fmt: skip
    skipped: dict[str, int] = field(default_factory=lambda: {"g": 0, "d": 0})
    rounds: list[list[tuple[str, int]]] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)
    # Wall time of all windows by the host's clock, and the sum of their segments: the parts must add up.
    wall_ns: int = 0
    segments_ns: int = 0
    # Rounds up to and including the last one in which torch compiled something.
    compiling_rounds: int = 0
    diverged_at_update: int | None = None

    @property
    def updates(self) -> int:
        """Optimizer updates done so far."""
        return int(self.counters["g_updates"] + self.counters["d_updates"])


class Trainer:
    """Trains a session until its budget is met or a loss is not finite.

    `evaluate` is called before the first round, whenever `evaluate_every` is passed, and at the end, and returns
    values for the curves or None where samples are not finite. `tell` takes new rows. The clock stands still meanwhile.
    """

    def __init__(
        self,
        session: Session,
        clock: WindowClock,
        evaluate: Callable[[Progress], dict[str, float] | None],
        tell: Callable[[Columns], None],
    ) -> None:
        self.progress = Progress()
        self._session = session
        self.clock = clock
        self._evaluate = evaluate
        self._tell = tell
        self._table = CurveTable()
        self._norms: dict[str, list[float]] = {"g": [], "d": []}

    def train(self) -> None:
        """Run the whole budget. Errors of the training itself pass through to the caller."""
        budget, every = self._session.spec.budget, self._session.spec.evaluate_every
        state = self.progress
        self._judge()
        due = every.amount
        while not budget.met(state.counters) and state.diverged_at_update is None:
            if self._probe_next():
                self._play(1, probe=True)
            else:
                self._play(self._window(budget, every, due), probe=False)
            # A loss that was not finite is not judged: the samples would only say so again, and too late.
            going_on = state.diverged_at_update is None and not budget.met(state.counters)
            if going_on and every.spent(state.counters) >= due:
                due = every.amount * (math.floor(every.spent(state.counters) / every.amount) + 1)
                self._judge()
        if state.diverged_at_update is None:
            self._judge()
        self.flush()

    def flush(self) -> None:
        """Hand over the rows that were not told yet."""
        if len(self._table):
            self._tell(self._table.take())

    def _probe_next(self) -> bool:
        # Not the first rounds: a warm-up is no place to look at gradients' usual size, and Adam has no state yet.
        return int(self.progress.counters["rounds"]) % PROBE_EVERY == PROBE_EVERY - 1

    def _window(self, budget: Budget, every: Budget, due: float) -> int:
        """How many rounds until something has to be done between rounds."""
        done = int(self.progress.counters["rounds"])
        until_probe = PROBE_EVERY - 1 - done % PROBE_EVERY
        left = min(self._rounds_for(budget, budget.amount), self._rounds_for(every, due))
        return max(1, min(until_probe, left))

    def _rounds_for(self, goal: Budget, amount: float) -> int:
        """Rounds until the counters reach the amount; never so many that they pass it by more than one round."""
        schedule, counters = self._session.schedule, self.progress.counters
        if goal.unit == "seconds":
            rounds = counters["rounds"]
            if rounds < 3:
                return 1
            # Half of what the average promises: windows shrink towards the goal instead of running over it.
            return max(1, int(0.5 * (amount - counters["seconds"]) / (counters["seconds"] / rounds)))
        each = {
            "rounds": 1,
            "g_updates": schedule.g_updates,
            "d_updates": schedule.d_updates,
            "updates": schedule.updates,
            "real_images": schedule.batches * self._session.spec.batch_size,
        }[goal.unit]
        return max(1, math.ceil((amount - goal.spent(counters)) / each))

    def _play(self, rounds: int, *, probe: bool) -> None:
        session, pair, clock = self._session, self._session.pair, self.clock
        players = (pair.g, pair.d)
        for player in players:
            player.before_step = self._read_norm if probe else None
        pair.mark = clock.mark
        whole = 0
        frames = _frames_compiled() if session.spec.compile else None
        clock.start()
        opened = time.perf_counter_ns()
        try:
            for _ in range(rounds):
                session.play_round()
                clock.mark("rest")
                whole += 1
                if frames is not None and frames != (frames := _frames_compiled()):
                    self.progress.compiling_rounds = len(self.progress.rounds) + whole
        finally:
            # A round that raised is cut off; the whole ones before it are results.
            pair.mark = unmarked
            segments = clock.stop()
            if whole == rounds:
                self.progress.wall_ns += time.perf_counter_ns() - opened
                self.progress.segments_ns += sum(nanoseconds for _, nanoseconds in segments)
            for player in players:
                player.before_step = None
            self._account(whole, segments, probe=probe)

    def _read_norm(self, player: Player) -> None:
        self._norms[player.name].append(player.grad_norm())

    def _account(self, rounds: int, segments: list[tuple[str, int]], *, probe: bool) -> None:
        """Read the window's losses in one go and turn them into rows, counting the steps that really happened."""
        session, state = self._session, self.progress
        pair, schedule = session.pair, session.schedule
        times = _by_round(segments)
        if probe and times:
            state.probed.append(len(state.rounds))
        state.rounds.extend(times)
        notes, pair.notes = pair.notes[: rounds * schedule.updates], []
        values = _read(notes)
        taken = {
            "g": iter(pair.g.steps_taken(rounds * schedule.g_updates)),
            "d": iter(pair.d.steps_taken(rounds * schedule.d_updates)),
        }
        norms = {name: iter(found) for name, found in self._norms.items()}
        self._norms = {"g": [], "d": []}
        window_seconds = sum(ns for row in times for _, ns in row) / 1e9
        speed = rounds * schedule.updates / window_seconds if window_seconds > 0 else None
        at = 0
        for round_times in times:
            state.counters["rounds"] += 1
            state.counters["real_images"] += schedule.batches * session.spec.batch_size
            state.counters["seconds"] += sum(ns for _, ns in round_times) / 1e9
            for note, row in zip(notes[at : at + schedule.updates], values[at : at + schedule.updates], strict=True):
                norm = next(norms[note.player], None)
                if norm is not None and math.isfinite(norm):
                    row[f"grad_norm/{note.player}"] = norm
                self._count(note.player, next(taken[note.player]))
                self._table.append({"step": state.updates, **state.counters, "updates_per_second": speed, **row})
                if state.diverged_at_update is None and not math.isfinite(row[f"loss/{note.player}"]):
                    state.diverged_at_update = state.updates
            at += schedule.updates
        if state.diverged_at_update is None and (pair.g.scale_lost or pair.d.scale_lost):
            state.diverged_at_update = state.updates
        if len(self._table) >= 500:
            self.flush()

    def _count(self, player: str, happened: bool) -> None:
        if happened:
            self.progress.counters[f"{player}_updates"] += 1
        else:
            self.progress.skipped[player] += 1

    def _judge(self) -> None:
        found = self._evaluate(self.progress)
        state = self.progress
        if found is None:
            state.diverged_at_update = state.updates
            return
        self._table.append({"step": state.updates, **state.counters, **found})
        self.flush()


def _frames_compiled() -> int:
    """How many frames torch has compiled in this process. It has no public count of them."""
    from torch._dynamo.utils import counters

    return int(counters["frames"]["total"])


def _by_round(segments: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    rounds: list[list[tuple[str, int]]] = [[]]
    for segment, nanoseconds in segments:
        rounds[-1].append((segment, nanoseconds))
        if segment == "rest":
            rounds.append([])
    return rounds[:-1]


def _read(notes: list[Note]) -> list[dict[str, float]]:
    """The notes' numbers, brought from the device at once and by few operations, however many notes there are."""
    if not notes:
        return []
    of_d = [note for note in notes if note.player == "d"]
    losses = [note.loss for note in notes]
    losses += [part for note in of_d for part in (note.real_loss, note.fake_loss) if part is not None]
    columns = [torch.stack(losses).float()]
    for side in ("real_scores", "fake_scores"):
        scores = [getattr(note, side) for note in of_d]
        if scores:
            columns.append(torch.stack(scores).float().flatten(1).mean(1))
    numbers: list[float] = torch.cat(columns).tolist()
    parts = len(notes)
    means = parts + 2 * len(of_d)
    rows: list[dict[str, float]] = []
    n = 0
    for loss, note in zip(numbers, notes, strict=False):
        if note.player == "g":
            rows.append({"loss/g": loss})
            continue
        rows.append(
            {
                "loss/d": loss,
                "loss/d_real": numbers[parts + 2 * n],
                "loss/d_fake": numbers[parts + 2 * n + 1],
                "score/real": numbers[means + n],
                "score/fake": numbers[means + len(of_d) + n],
            }
        )
        n += 1
    return rows
