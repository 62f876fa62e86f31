"""Which arm is proposed next, and which trial is ended early.

Every trial has a sampler of its own, seeded by the study's content and the trial's number: what a sampler knows lies in
the study's trials, so a study that is continued never repeats its first proposals, and two processes do not propose
alike. Grid and brute force are no samplers here: `Study` chooses among the points that are left, because Optuna's own
count failed, pruned and stale trials as done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from ganbench.spec.domain import Primitive
from ganbench.spec.search import EXHAUSTIVE, SearchSpec
from ganbench.spec.seeds import derive_seed

# Optuna's 50 is made for thousands of trials; a search over GANs has tens.
POPULATION = 16


def choose(spec: SearchSpec) -> tuple[str, str]:
    """The sampler that a search uses, and why, in one line."""
    size, trials = spec.size, spec.trials
    if spec.sampler != "auto":
        points = "" if spec.sampler not in EXHAUSTIVE else f": every one of the space's {size} points once"
        return spec.sampler, f"sampler {spec.sampler}, as asked for{points}"
    if size is not None and size <= trials:
        return "brute", f"sampler brute: the space has {size} points, not more than the {trials} trials"
    held = "endlessly many" if size is None else size
    several = "" if len(spec.objectives) == 1 else f" and {len(spec.objectives)} objectives"
    return "tpe", f"sampler tpe: the space has {held} points for {trials} trials{several}"


def seeded(name: str, study_id: str, number: int, trials: int) -> BaseSampler:
    """A sampler for the trial of that number, of so many in all.

    Proposals in flight are known to it: TPE takes them for bad ones, the Gaussian process for likely ones; neither
    proposes beside them.
    """
    seed = derive_seed("search", study_id, number) % 2**32
    if name == "tpe":
        return TPESampler(seed=seed, constant_liar=True, n_startup_trials=max(5, min(10, trials // 4)))
    if name == "gp":
        return GPSampler(seed=seed)
    if name == "nsga2":
        return NSGAIISampler(seed=seed, population_size=POPULATION)
    return RandomSampler(seed=seed)


def pruner(name: str) -> BasePruner:
    """Ends trials whose quality on the way is worse than that of others at the same share of the budget."""
    if name == "median":
        return MedianPruner(n_startup_trials=4)
    if name == "halving":
        return SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    return NopPruner()


class Given(BaseSampler):
    """Proposes one given point."""

    def __init__(self, point: Mapping[str, Primitive], space: Mapping[str, BaseDistribution]) -> None:
        self._point = dict(point)
        self._space = dict(space)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """The whole space."""
        return self._space

    def sample_relative(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The point."""
        return self._point

    def sample_independent(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        param_name: str,
        param_distribution: BaseDistribution,  # noqa: ARG002
    ) -> Any:
        """The point's value."""
        return self._point[param_name]

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Nothing is kept."""
