"""Certificates for what a sweep would run: one for every arm that trains in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganbench.execute.certify import certificate_of
from ganbench.execute.local import LocalExecutor
from ganbench.record.certificate import Certificate
from ganbench.spec.ratio import UpdateRatio
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.spec.value import content_hash

# Several bugs cannot be seen with one D update a round.
ADDED = UpdateRatio(2, 3)
ROUNDS = 3
# What says how long an arm trains and how it is judged, not how it trains.
_BESIDE = ("budget", "evaluate", "calibration", "seed")


def certificate_key(arm: RunSpec) -> str:
    """Content hash of what a certificate depends on."""
    return content_hash({key: value for key, value in arm.content().items() if key not in _BESIDE})


def to_certify(sweep: SweepSpec) -> tuple[list[RunSpec], bool]:
    """The arms of a sweep that train in different ways, with its first seed, by ratio; and whether `ADDED` was added,
    since the sweep has no ratio with several D updates."""
    arms = [arm.model_copy(update={"calibration": False, "seed": sweep.seeds[0]}) for arm in sweep.arms]
    added = all(arm.ratio.d == 1 for arm in arms)
    if added:
        arms += [arm.model_copy(update={"ratio": ADDED}) for arm in arms]
    unique = {certificate_key(arm): arm for arm in arms}
    return sorted(unique.values(), key=lambda arm: arm.ratio), added


def certify_arms(
    arms: Sequence[RunSpec], executor: LocalExecutor, made: Callable[[Certificate], None], rounds: int = ROUNDS
) -> dict[str, Certificate]:
    """The certificates by `certificate_key`; `made` is told of each.

    Raises:
        UsageError: networks or data cannot be used.
    """
    found = {}
    for arm in arms:
        certificate = found[certificate_key(arm)] = certificate_of(executor, arm, rounds)
        made(certificate)
    return found


def verdicts_of(sweep: SweepSpec, certificates: dict[str, Certificate]) -> dict[str, str]:
    """For each arm of a sweep (by arm_key) the words of its certificate."""
    return {arm.arm_key: certificates[key].text for arm in sweep.arms if (key := certificate_key(arm)) in certificates}
