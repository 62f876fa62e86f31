"""Expectation against what happened, over the runs of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ganbench.spec.strategy import REFERENCE, Verdict


@dataclass(frozen=True)
class Judged:
    """What a judgement needs of a run. `weights` is the checksum of all parameters and buffers at the end."""

    run_key: str
    pairing_key: str
    strategy: str
    verdict: Verdict
    came_out_as_declared: bool
    ended_ok: bool
    weights: str | None
    bit_exact: bool
    # How it ended, in words, and how many rounds it made.
    ended: str = ""
    rounds: int | None = None
    is_copy: bool = False


@dataclass(frozen=True)
class Judgement:
    """Whether a run came out as expected, and why in one line."""

    as_expected: bool
    reason: str


def judge(runs: Iterable[Judged]) -> dict[str, Judgement]:
    """Hold every run against its expectation; trajectories against the reference's run with the same seed.

    `same` asks for the reference's checksum where the device is bit-exact, `contaminated` for another one. Where the
    reference did not run, only the outcome is judged, and the reason says so.
    """
    runs = list(runs)
    reference = {run.pairing_key: run for run in runs if run.strategy == REFERENCE and run.ended_ok and not run.is_copy}
    return {run.run_key: _judge(run, reference.get(run.pairing_key)) for run in runs}


def _judge(run: Judged, reference: Judged | None) -> Judgement:
    if not run.came_out_as_declared:
        return Judgement(False, f"expected '{run.verdict}', but {run.ended or 'its outcome is another'}")
    if run.verdict in (Verdict.REFERENCE, Verdict.OTHER_ESTIMATOR, Verdict.RAISES):
        return Judgement(True, f"came out as '{run.verdict}'")
    if reference is None or run.weights is None or reference.weights is None:
        return Judgement(True, f"ran; '{run.verdict}' not checked, {REFERENCE} did not run beside it")
    if run.rounds != reference.rounds:
        # A budget in seconds: each arm came as far as it came.
        return Judgement(True, f"ran; {run.rounds} rounds against {reference.rounds}: weights cannot be compared")
    equal = run.weights == reference.weights
    if run.verdict is Verdict.TO_BE_JUDGED:
        return Judgement(True, f"ran; weights {'bit-equal to' if equal else 'differ from'} {REFERENCE}")
    if run.verdict is Verdict.SAME:
        if equal:
            return Judgement(True, f"weights bit-equal to {REFERENCE}")
        if not run.bit_exact:
            return Judgement(True, f"ran; weights differ from {REFERENCE}, which this device does not make bit-equal")
        return Judgement(False, f"expected the trajectory of {REFERENCE}, but the weights differ")
    if equal:
        return Judgement(False, f"expected '{run.verdict}', but the weights are bit-equal to {REFERENCE}")
    return Judgement(True, f"weights differ from {REFERENCE}, as expected of '{run.verdict}'")
