"""Proposals that were not made before: a point that is tried already costs a trial and tells nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from ganbench.spec.domain import Primitive
from ganbench.spec.seeds import derive_seed
from ganbench.spec.space import Point, Space

# So often a sampler is asked again before a point is drawn at random.
_TRIES = 10
# Finite spaces up to this size are looked through for what is left.
_LISTED = 100_000


def left(space: Space, seen: set[Point], most: int = _LISTED) -> list[dict[str, Primitive]] | None:
    """The points of a finite space that are not seen yet; None where there are more than `most` to look through."""
    size = space.size
    if size is None or size > most:
        return None
    return [params for params in space.points() if space.place(params) not in seen]


def in_random_order(points: Sequence[dict[str, Primitive]], study_id: str) -> list[dict[str, Primitive]]:
    """The points that are left, shuffled the same way by every process of a study: what a stopped search has seen is
    spread over the space, and drift of the machine hits all alike."""
    ordered = sorted(points, key=lambda params: repr(sorted(params.items())))
    random.Random(derive_seed("search order", study_id)).shuffle(ordered)
    return ordered


class Unseen(BaseSampler):
    """Asks another sampler until it proposes a point that is not seen yet, at last a random one."""

    def __init__(
        self, inner: BaseSampler, space: Space, drawn_from: Mapping[str, BaseDistribution], seen: set[Point], seed: int
    ) -> None:
        self._inner = inner
        self._space = space
        self._drawn_from = dict(drawn_from)
        self._seen = seen
        self._random = RandomSampler(seed=seed)
        self._seed = seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """The whole space: a point is drawn at once, so that it can be looked at as a whole."""
        return self._drawn_from

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """A point that is not seen yet, where there is one."""
        point: dict[str, Any] = {}
        for attempt in range(2 * _TRIES):
            point = self._draw(self._inner if attempt < _TRIES else self._random, study, trial)
            if self._space.place(point) not in self._seen:
                return point
        rest = left(self._space, self._seen)
        return random.Random(self._seed).choice(rest) if rest else point

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Of one parameter alone, for a trial that was begun by a process that died in the middle of it."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """The inner sampler's."""
        self._inner.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """The inner sampler's."""
        self._inner.after_trial(study, trial, state, values)

    def _draw(self, sampler: BaseSampler, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        known = sampler.infer_relative_search_space(study, trial)
        point = sampler.sample_relative(study, trial, known) if known else {}
        for name, distribution in self._drawn_from.items():
            if name not in point:
                point[name] = sampler.sample_independent(study, trial, name, distribution)
        return {name: point[name] for name in self._drawn_from}
