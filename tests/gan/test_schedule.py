"""The order of a round's calls is the one that the schedule prints."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ganbench.gan.schedule import Fakes, RoundInput, Schedule
from ganbench.spec.ratio import UpdateRatio

Order = Literal["g_first", "d_first"]
Batches = Literal["per_round", "per_d_update"]

schedules = st.builds(
    Schedule,
    st.builds(UpdateRatio, st.integers(1, 7), st.integers(1, 7)),
    st.sampled_from(["g_first", "d_first"]),
    st.sampled_from(["per_round", "per_d_update"]),
)


class Recorder:
    """Writes down what the schedule asks for. `first_images`: fakes made before D's updates come with pictures."""

    def __init__(self, *, first_images: bool = True) -> None:
        self.first_images = first_images
        self.log: list[str] = []
        self.g_fakes: list[Fakes] = []
        self.feeding: list[bool] = []
        self.d_fakes: list[Fakes] = []
        self.real: list[Tensor] = []
        self.own: list[Tensor | None] = []

    def generate(self, latents: Tensor) -> Fakes:
        self.log.append("make")
        return Fakes(latents, latents + 100)

    def fakes_first(self, latents: Tensor) -> Fakes:
        self.log.append("first")
        return Fakes(latents, latents + 100 if self.first_images else None)

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        self.log.append("G")
        self.g_fakes.append(fakes)
        self.feeding.append(feeds_discriminator)

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:
        self.log.append("D")
        self.d_fakes.append(fakes)
        self.real.append(real)
        self.own.append(own_latents)

    def end_round(self) -> None:
        self.log.append("end")

    @property
    def updates(self) -> str:
        return " ".join(entry for entry in self.log if entry in "GD")


def round_input(schedule: Schedule) -> RoundInput:
    """Each tensor holds its own number."""
    return RoundInput(
        latents=[torch.tensor([n]) for n in range(schedule.g_updates)],
        real=[torch.tensor([n]) for n in range(schedule.batches)],
        own_latents=[torch.tensor([n]) for n in range(schedule.d_updates)],
    )


def played(schedule: Schedule, *, first_images: bool = True) -> Recorder:
    moves = Recorder(first_images=first_images)
    schedule.play(moves, round_input(schedule))
    return moves


@settings(deadline=None)
@given(schedules)
def test_the_calls_are_those_that_are_printed(schedule: Schedule) -> None:
    moves = played(schedule)
    assert moves.updates == str(schedule)
    assert moves.log.index("end") == len(moves.log) - 1


@settings(deadline=None)
@given(schedules)
def test_the_counts_are_the_ratios_and_never_zero(schedule: Schedule) -> None:
    moves = played(schedule)
    assert moves.log.count("G") == schedule.g_updates == schedule.ratio.g >= 1
    assert moves.log.count("D") == schedule.d_updates == schedule.ratio.d >= 1
    assert schedule.updates == len(moves.updates.split())


@settings(deadline=None)
@given(schedules)
def test_one_real_batch_a_round_is_reused_and_one_a_d_update_is_not(schedule: Schedule) -> None:
    seen = [int(batch) for batch in played(schedule).real]
    per_round = schedule.real_batches == "per_round"
    assert seen == ([0] * schedule.d_updates if per_round else list(range(schedule.d_updates)))
    assert schedule.batches == len(set(seen))


@settings(deadline=None)
@given(schedules)
def test_only_the_last_g_update_before_d_feeds_it(schedule: Schedule) -> None:
    *earlier, last = played(schedule).feeding
    assert not any(earlier)
    assert last == (schedule.order == "g_first")


@settings(deadline=None)
@given(schedules, st.booleans())
def test_each_g_update_has_its_own_latents_in_the_order_drawn(schedule: Schedule, first_images: bool) -> None:
    moves = played(schedule, first_images=first_images)
    assert [int(fakes.latents) for fakes in moves.g_fakes] == list(range(schedule.g_updates))
    assert all(fakes.images is not None for fakes in moves.g_fakes)


@settings(deadline=None)
@given(schedules)
def test_d_sees_the_fakes_that_the_order_names(schedule: Schedule) -> None:
    moves = played(schedule)
    source = moves.g_fakes[-1] if schedule.order == "g_first" else moves.g_fakes[0]
    assert all(fakes is source for fakes in moves.d_fakes)
    assert [None if own is None else int(own) for own in moves.own] == list(range(schedule.d_updates))


@pytest.mark.parametrize(
    ("ratio", "order", "first_images", "log"),
    [
        ("2:1", "g_first", True, "make G make G D end"),
        ("1:3", "g_first", True, "make G D D D end"),
        ("2:2", "d_first", True, "first D D G make G end"),
        ("2:2", "d_first", False, "first D D make G make G end"),
    ],
)
def test_a_round_written_out(ratio: str, order: Order, first_images: bool, log: str) -> None:
    moves = played(Schedule(UpdateRatio.parse(ratio), order), first_images=first_images)
    assert moves.log == log.split()


def test_the_article_is_the_default() -> None:
    schedule = Schedule(UpdateRatio(5, 1))
    assert str(schedule) == "G G G G G D"
    assert schedule.batches == 1
