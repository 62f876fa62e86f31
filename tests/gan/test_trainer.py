"""The training loop: budgets, evaluation points, rows, probes, and the ways in which a run ends early."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from ganbench.gan.player import Player
from ganbench.gan.session import Session
from ganbench.gan.trainer import PROBE_EVERY, Progress, Trainer
from ganbench.measure import clock_for
from ganbench.record.curves import Columns, CurveTable

SessionOf = Callable[..., Session]
Own = Callable[..., dict[str, Any]]


class FakeClock:
    """Every segment takes one millisecond. Refuses windows in windows, and marks and stops outside."""

    def __init__(self) -> None:
        self.open = False
        self.log: list[str] = []
        self.segments: list[tuple[str, int]] = []

    def start(self) -> None:
        assert not self.open
        self.open, self.segments = True, []
        self.log.append("start")

    def mark(self, segment: str) -> None:
        assert self.open
        self.segments.append((segment, 1_000_000))
        self.log.append(segment)

    def stop(self) -> list[tuple[str, int]]:
        assert self.open
        self.open = False
        self.log.append("stop")
        return self.segments


@dataclass
class Run:
    """A trainer with what it told. `answer` is what each evaluation returns, by the number of those before."""

    session: Session
    answer: Callable[[int], dict[str, float] | None] = lambda _: {"quality/x": 1.0}
    clock: FakeClock = field(default_factory=FakeClock)
    judged: list[dict[str, float]] = field(default_factory=list)
    table: CurveTable = field(default_factory=CurveTable)

    def __post_init__(self) -> None:
        self.trainer = Trainer(self.session, self.clock, self.evaluate, self.tell)

    def evaluate(self, progress: Progress) -> dict[str, float] | None:
        assert not self.clock.open
        self.clock.log.append("evaluate")
        self.judged.append(dict(progress.counters))
        return self.answer(len(self.judged) - 1)

    def tell(self, columns: Columns) -> None:
        assert not self.clock.open
        self.table.extend(columns)

    def train(self) -> Progress:
        self.trainer.train()
        return self.trainer.progress

    @property
    def updates(self) -> list[dict[str, float]]:
        """The rows of updates, without those of evaluations."""
        return [row for row in self.table.rows() if "loss/g" in row or "loss/d" in row]


def by_hand(session: Session, rounds: int) -> list[dict[str, float]]:
    """The losses, scores and gradient norms of every update, played without the trainer."""
    norms: list[tuple[str, float]] = []

    def keep(player: Player) -> None:
        norms.append((player.name, player.grad_norm()))

    session.pair.g.before_step = session.pair.d.before_step = keep
    rows = []
    for _ in range(rounds):
        session.play_round()
        of_round = {name: iter([norm for whose, norm in norms if whose == name]) for name in "gd"}
        norms.clear()
        for note in session.pair.notes:
            row = {f"loss/{note.player}": note.loss.item(), f"grad_norm/{note.player}": next(of_round[note.player])}
            if note.player == "d":
                tensors: list[Tensor | None] = [note.real_loss, note.fake_loss, note.real_scores, note.fake_scores]
                names = ["loss/d_real", "loss/d_fake", "score/real", "score/fake"]
                row |= {name: t.mean().item() for name, t in zip(names, tensors, strict=True) if t is not None}
            rows.append(row)
        session.pair.notes.clear()
    return rows


# -- budgets --------------------------------------------------------------------------------------------------------

# With 2:3 and a batch for each D update, a round is 2 + 3 updates, 24 pictures and 14 segments of one millisecond.
EACH = {"rounds": 1, "g_updates": 2, "d_updates": 3, "updates": 5, "real_images": 24, "seconds": 0.014}


@pytest.mark.parametrize(
    ("amount", "unit", "rounds"),
    [
        (1, "rounds", 1),
        (53, "rounds", 53),
        (55, "g_updates", 28),
        (80, "d_updates", 27),
        (1, "updates", 1),
        (5, "updates", 1),
        (131, "updates", 27),
        (1000, "real_images", 42),
        (0.001, "seconds", 1),
        (0.75, "seconds", 54),
    ],
)
def test_a_run_stops_at_the_end_of_the_round_in_which_its_budget_is_met(
    session_of: SessionOf, amount: float, unit: str, rounds: int
) -> None:
    run = Run(session_of(ratio="2:3", real_batches="per_d_update", budget=f"{amount} {unit}"))
    state = run.train()
    expected = {name: each * rounds for name, each in EACH.items() if name != "updates"}
    assert state.counters == pytest.approx(expected)
    assert state.updates == 5 * rounds
    assert len(state.rounds) == rounds
    overshoot = run.session.spec.budget.spent(state.counters) - amount
    assert -1e-9 < overshoot < EACH[unit]
    assert run.clock.log.count("rest") == rounds
    assert state.diverged_at_update is None


def test_seconds_are_those_of_the_clock_and_overshoot(session_of: SessionOf) -> None:
    state = Run(session_of(ratio="2:3", budget="0.1 seconds")).train()
    assert state.counters["seconds"] > 0.1
    assert state.counters["seconds"] == pytest.approx(sum(ns for row in state.rounds for _, ns in row) / 1e9)


def test_raw_times_are_kept_by_round(session_of: SessionOf) -> None:
    state = Run(session_of(ratio="2:1", budget="30 rounds")).train()
    segments = ["data", *["g", "g", "g_step"] * 2, "d", "d_step", "rest"]
    assert state.rounds == [[(segment, 1_000_000) for segment in segments]] * 30


# -- evaluation points ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "every", "unit", "points"),
    [
        # A round is two G and three D updates.
        ("23 updates", "7 updates", "updates", [0, 10, 15, 25]),
        ("20 updates", "2 updates", "updates", [0, 5, 10, 15, 20]),
        ("20 updates", "20 updates", "updates", [0, 20]),
        ("20 updates", "1000 updates", "updates", [0, 20]),
        ("60 rounds", "25 rounds", "rounds", [0, 25, 50, 60]),
        ("60 rounds", "40 g_updates", "g_updates", [0, 40, 80, 120]),
        ("0.155 seconds", "0.045 seconds", "rounds", [0, 4, 7, 10, 12]),
    ],
)
def test_evaluations_come_first_whenever_every_is_passed_and_last(
    session_of: SessionOf, budget: str, every: str, unit: str, points: list[int]
) -> None:
    run = Run(session_of(ratio="2:3", budget=budget, evaluate={"every": every}))
    state = run.train()
    found = [c["g_updates"] + c["d_updates"] if unit == "updates" else c[unit] for c in run.judged]
    assert found == points
    assert run.judged[-1] == state.counters


def test_left_out_evaluations_come_four_times_a_run(session_of: SessionOf) -> None:
    run = Run(session_of(ratio="2:3", budget="400 updates"))
    run.train()
    assert [c["rounds"] for c in run.judged] == [0, 20, 40, 60, 80]


def test_the_clock_stands_still_in_evaluations(session_of: SessionOf) -> None:
    """The clock itself refuses nested windows; `Run.evaluate` and `Run.tell` that one is open."""
    run = Run(session_of(ratio="2:3", budget="30 rounds", evaluate={"every": "9 rounds"}))
    run.train()
    log = [entry for entry in run.clock.log if entry in ("start", "stop", "evaluate")]
    text = " ".join(log)
    assert text.startswith("evaluate start stop ")
    assert text.endswith(" stop evaluate")
    assert log.count("evaluate") == 5
    assert "start evaluate" not in text
    assert log.count("start") == log.count("stop")


def test_what_an_evaluation_found_is_a_row_at_its_update(session_of: SessionOf) -> None:
    run = Run(
        session_of(ratio="2:3", budget="20 updates", evaluate={"every": "10 updates"}),
        answer=lambda n: {"quality/x": n / 8, "quality/y": -float(n)},
    )
    run.train()
    rows = [row for row in run.table.rows() if "quality/x" in row]
    assert [(row["step"], row["rounds"], row["quality/x"], row["quality/y"]) for row in rows] == [
        (0, 0, 0.0, 0.0),
        (10, 2, 0.125, -1.0),
        (20, 4, 0.25, -2.0),
    ]
    assert all("loss/g" not in row for row in rows)


# -- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["detach", "retain_deferred", "no_grad_fresh"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_each_update_is_a_row_with_the_numbers_of_an_independent_run(
    session_of: SessionOf, order: str, strategy: str
) -> None:
    fields = {"ratio": "2:3", "order": order, "strategy": strategy}
    run = Run(session_of(budget="30 rounds", **fields))
    run.train()
    expected = by_hand(session_of(**fields), 30)
    rows = run.updates
    assert len(rows) == len(expected) == 150
    for n, (row, its) in enumerate(zip(rows, expected, strict=True)):
        assert row["step"] == n + 1 == row["g_updates"] + row["d_updates"]
        assert row["rounds"] == n // 5 + 1
        assert row["real_images"] == 8 * row["rounds"]
        curves = {name: value for name, value in row.items() if "/" in name and not name.startswith("grad_norm")}
        assert curves == pytest.approx({k: v for k, v in its.items() if not k.startswith("grad_norm")}, rel=1e-6)
    kinds = ["g" if "loss/g" in row else "d" for row in rows[:5]]
    assert " ".join(kinds).upper() == str(run.session.schedule)


def test_no_row_is_lost_or_told_twice_in_a_longer_run(session_of: SessionOf) -> None:
    told: list[int] = []
    run = Run(session_of(ratio="2:3", budget="130 rounds", evaluate={"every": "1000 rounds"}))
    keep = run.tell
    run.trainer._tell = lambda columns: (told.append(len(columns["step"])), keep(columns))[1]
    run.train()
    assert [row["step"] for row in run.updates] == list(range(1, 651))
    # Rows go out while the run is on, and not one by one.
    assert 2 < len(told) < 10


def test_updates_per_second_are_those_of_the_window(session_of: SessionOf) -> None:
    run = Run(session_of(ratio="2:1", budget="30 rounds"))
    run.train()
    assert {round(row["updates_per_second"], 6) for row in run.updates} == {300.0}


@pytest.mark.parametrize("strategy", ["detach", "retain_deferred"])
def test_gradient_norms_are_read_in_probe_rounds_only(session_of: SessionOf, strategy: str) -> None:
    fields = {"ratio": "2:3", "strategy": strategy}
    run = Run(session_of(budget=f"{2 * PROBE_EVERY + 7} rounds", **fields))
    state = run.train()
    assert state.probed == [PROBE_EVERY - 1, 2 * PROBE_EVERY - 1]
    expected = by_hand(session_of(**fields), 2 * PROBE_EVERY + 7)
    for n, (row, its) in enumerate(zip(run.updates, expected, strict=True)):
        found = {name: value for name, value in row.items() if name.startswith("grad_norm")}
        if n // 5 in state.probed:
            assert found == pytest.approx({k: v for k, v in its.items() if k.startswith("grad_norm")}, rel=1e-5)
            assert len(found) == 1
        else:
            assert found == {}
    assert run.session.pair.g.before_step is None
    assert run.session.pair.d.before_step is None


@pytest.mark.parametrize("budget", ["60 rounds", "120 g_updates", "180 d_updates", "300 updates", "480 real_images"])
def test_a_probe_is_a_window_of_its_own_and_nothing_else_cuts_one(session_of: SessionOf, budget: str) -> None:
    run = Run(session_of(ratio="2:3", budget=budget, evaluate={"every": budget}))
    run.train()
    windows = [text.count("rest") for text in " ".join(run.clock.log).split("start")[1:]]
    assert windows == [PROBE_EVERY - 1, 1, PROBE_EVERY - 1, 1, 60 - 2 * PROBE_EVERY]


# -- ends before the budget -----------------------------------------------------------------------------------------

# At 2:1 D scores four times a round: once in each G update, twice in the D update.


def test_a_round_that_raises_leaves_the_whole_ones_before_it(session_of: SessionOf, own: Own) -> None:
    failing = own(discriminator="Failing", d={"call": 18, "raises": True})
    run = Run(session_of(ratio="2:1", budget="40 rounds", model=failing))
    with pytest.raises(RuntimeError, match="call 18"):
        run.train()
    run.trainer.flush()
    state = run.trainer.progress
    assert state.counters == pytest.approx(
        {"rounds": 4, "g_updates": 8, "d_updates": 4, "real_images": 32, "seconds": 0.04}
    )
    assert [row["step"] for row in run.updates] == list(range(1, 13))
    expected = by_hand(session_of(ratio="2:1", model=own()), 4)
    for row, its in zip(run.updates, expected, strict=True):
        assert {k: row[k] for k in its if k.startswith("loss")} == pytest.approx(
            {k: v for k, v in its.items() if k.startswith("loss")}, rel=1e-6
        )
    assert len(state.rounds) == 4
    assert not run.clock.open
    assert run.session.pair.notes == []
    assert state.diverged_at_update is None


def test_a_probe_round_that_raises_is_not_listed(session_of: SessionOf, own: Own) -> None:
    failing = own(discriminator="Failing", d={"call": 4 * (PROBE_EVERY - 1) + 3, "raises": True})
    run = Run(session_of(ratio="2:1", budget="40 rounds", model=failing))
    with pytest.raises(RuntimeError, match="call 99"):
        run.train()
    run.trainer.flush()
    assert run.trainer.progress.counters["rounds"] == PROBE_EVERY - 1
    assert run.trainer.progress.probed == []
    assert run.session.pair.g.before_step is None
    assert len(run.updates) == 3 * (PROBE_EVERY - 1)


@pytest.mark.parametrize(("call", "update"), [(0, 1), (9, 8), (10, 9), (11, 9), (12, 10)])
def test_a_loss_that_is_not_finite_ends_the_run_at_its_update(
    session_of: SessionOf, own: Own, call: int, update: int
) -> None:
    failing = own(discriminator="Failing", d={"call": call, "raises": False})
    run = Run(session_of(ratio="2:1", budget="40 rounds", model=failing, evaluate={"every": "7 rounds"}))
    state = run.train()
    assert state.diverged_at_update == update
    # The window is played to its end, and a generator known to be broken is not judged.
    assert state.counters["rounds"] == 7
    assert len(run.judged) == 1
    losses = [row.get("loss/g", row.get("loss/d", 0.0)) for row in run.updates]
    assert [math.isfinite(loss) for loss in losses] == [n < update for n in range(1, 22)]


def test_samples_that_are_not_finite_do_not_hide_where_the_loss_was_lost(session_of: SessionOf, own: Own) -> None:
    failing = own(discriminator="Failing", d={"call": 10, "raises": False})
    run = Run(
        session_of(ratio="2:1", budget="40 rounds", model=failing, evaluate={"every": "7 rounds"}),
        answer=lambda n: {"quality/x": 1.0} if n == 0 else None,
    )
    assert run.train().diverged_at_update == 9


@pytest.mark.parametrize(("first_none", "update"), [(0, 0), (1, 10), (2, 20), (4, 40)])
def test_an_evaluation_that_finds_no_finite_samples_ends_the_run(
    session_of: SessionOf, first_none: int, update: int
) -> None:
    run = Run(
        session_of(ratio="2:3", budget="40 updates", evaluate={"every": "10 updates"}),
        answer=lambda n: None if n >= first_none else {"quality/x": 1.0},
    )
    state = run.train()
    assert state.diverged_at_update == update
    assert len(run.judged) == first_none + 1
    assert [row["step"] for row in run.table.rows() if "quality/x" in row] == [10 * n for n in range(first_none)]
    assert len(run.updates) == update


def test_an_error_of_the_evaluation_is_passed_on(session_of: SessionOf) -> None:
    def answer(n: int) -> dict[str, float]:
        raise ValueError(f"evaluation {n}")

    with pytest.raises(ValueError, match="evaluation 0"):
        Run(session_of(ratio="2:3"), answer=answer).train()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_a_run_on_cuda_gives_the_losses_of_the_cpu(session_of: SessionOf, order: str) -> None:
    fields = {"ratio": "2:3", "order": order, "budget": "6 rounds"}
    session = session_of(on="cuda", **fields)
    table = CurveTable()
    trainer = Trainer(session, clock_for(session.device), lambda _: {}, table.extend)
    trainer.train()
    assert len(trainer.progress.rounds) == 6
    assert trainer.progress.counters["seconds"] > 0
    rows = [row for row in table.rows() if "loss/g" in row or "loss/d" in row]
    for row, its in zip(rows, by_hand(session_of(**fields), 6), strict=True):
        assert {k: row[k] for k in its if k.startswith("loss")} == pytest.approx(
            {k: v for k, v in its.items() if k.startswith("loss")}, rel=1e-3
        )
