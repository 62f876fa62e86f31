"""Networks, data and loss looked over before any run: each check gets fresh copies and tells what it finds.

A check is one function `Parts -> Iterator[Finding]` and one entry of `STAGES`. `parts_of` builds the parts of a run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from ganbench.gan.check import (
    dependence,
    layers,
    losses,
    normalisation,
    parameters,
    penalty,
    ranges,
    shapes,
    state,
    switches,
)
from ganbench.gan.check.parts import Parts, parts_of
from ganbench.record.finding import Finding, Looked, by_severity

Check = Callable[[Parts], Iterator[Finding]]

# A stage is begun only while no error was found: what a network that cannot be called depends on need not be asked.
STAGES: tuple[tuple[Check, ...], ...] = (
    # What can be seen without calling anything.
    (
        switches.switches_left_alone,
        parameters.trainable,
        parameters.hidden,
        parameters.shared,
        parameters.frozen,
        parameters.lazy,
        layers.leaky_slopes,
        layers.norm_epsilons,
        layers.wrappers,
        normalisation.modes_at_first,
        normalisation.batch_of_one,
        normalisation.norm_under_penalty,
        ranges.data_keeps_its_range,
    ),
    # Can they be called at all?
    (shapes.generator_follows_batch, shapes.discriminator_follows_batch),
    (shapes.fakes_are_like_real,),
    (losses.loss_is_a_number, ranges.scores_suit_the_loss),
    (state.inputs_are_left_alone,),
    (
        ranges.fakes_cover_the_data,
        layers.squashed_once,
        normalisation.modes_kept,
        dependence.outputs_are_finite,
        dependence.outputs_depend_on_inputs,
        dependence.gradients_reach_parameters,
        dependence.fakes_are_repeatable,
        penalty.penalty_reaches_critic,
        state.rounds_can_be_played,
    ),
)


def look(build: Callable[[], Parts]) -> Looked:
    """Make every check, each on parts built for it alone; no check changes the global random state.

    A check that fails itself is told as a finding `unchecked`.

    Raises:
        UserCodeError: a user's file cannot be used; from `build`.
    """
    found: list[Finding] = []
    made, left_out = 0, []
    probe: int | None = None
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # They were told when the networks are used; a check is no place to tell them thirty times.
        warnings.simplefilter("ignore")
        for stage in STAGES:
            if any(finding.severity == "error" for finding in found):
                left_out += [_name(check) for check in stage]
                continue
            if stage in STAGES[2:] and probe is None:
                probe = _usable_probe(build)
            for check in stage:
                torch.manual_seed(0)
                # The first stage calls nothing: its checks share what the constructors gave.
                if stage is not STAGES[0] or check is stage[0]:
                    parts = build()
                found += _checked(check, parts if probe is None else replace(parts, probe=probe))
                made += 1
    return Looked(by_severity(found), made, tuple(left_out))


def _checked(check: Check, parts: Parts) -> list[Finding]:
    found: list[Finding] = []
    try:
        for finding in check(parts):
            found.append(finding)
    except Exception as error:  # noqa: BLE001 - whatever a user's network raises where no check expected it
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        found.append(
            Finding(
                "unchecked",
                "note",
                f"'{_name(check)}' could not be checked",
                text,
                "the other checks are not touched by it; what it says is the network's own error",
            )
        )
    return found


def _usable_probe(build: Callable[[], Parts]) -> int:
    """The number of samples for probes: a small one if the networks take it, else the batch size."""
    parts = build()
    try:
        parts.scores(parts.fakes())
        parts.scores(parts.real(parts.probe))
    except Exception:  # noqa: BLE001 - too few for groups, or another number than is written into the network
        return parts.batch_size
    return parts.probe


def _name(check: Check) -> str:
    return check.__name__.replace("_", " ")


__all__ = ["STAGES", "Check", "Parts", "look", "parts_of"]
