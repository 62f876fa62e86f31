"""One Optuna study by ask and tell, shared by any number of processes: each trial is claimed by one of them, trials of
dead ones are taken over, and there are never more than were asked for."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from ganbench.errors import UsageError
from ganbench.record.outcome import Outcome
from ganbench.search.distributions import distributions, suggest
from ganbench.search.lock import Lock
from ganbench.search.owner import Owner
from ganbench.search.proposals import Unseen, in_random_order, left
from ganbench.search.samplers import Given, choose, pruner, seeded
from ganbench.search.told import Told
from ganbench.spec.domain import Primitive
from ganbench.spec.search import EXHAUSTIVE, SearchSpec
from ganbench.spec.seeds import derive_seed
from ganbench.spec.space import Point

OWNER, HEARTBEAT, OUTCOME, REASON, IDENTITY = "owner", "heartbeat", "outcome", "reason", "ganbench.identity"
# Seconds without a heartbeat after which a process on another host counts as dead.
GRACE = 180.0
_STATES = {"complete": TrialState.COMPLETE, "failed": TrialState.FAIL, "pruned": TrialState.PRUNED}
_UNFINISHED = (TrialState.RUNNING, TrialState.WAITING)
_RESULTS = frozenset(str(outcome) for outcome in Outcome if outcome.is_result)


class Nothing(Enum):
    """Why there is nothing to claim."""

    DONE = "every trial is over"
    WAIT = "the last trials are in other hands, or in flight"


@dataclass(frozen=True)
class Claim:
    """A trial that is this process's to carry out. `adopted`: another process had begun it and died."""

    trial: Trial
    params: dict[str, Primitive]
    adopted: bool = False


class SharedStudy:
    """The study of a search.

    Raises:
        UsageError: the storage has a study of that name that asks for something else.
    """

    def __init__(self, spec: SearchSpec, storage: BaseStorage, lock: Lock) -> None:
        self._spec = spec
        self._lock = lock
        self._distributions = distributions(spec.space)
        self.sampler, self.sampler_line = choose(spec)
        self.owner = Owner.here()
        # Trials that ended here, whatever they came to: none is asked again within a session.
        self._ended_here: set[int] = set()
        self._held: dict[int, Trial] = {}
        with lock.held("claim"):
            self.study = optuna.create_study(
                storage=storage,
                study_name=spec.name,
                directions=[objective.direction for objective in spec.objectives],
                pruner=pruner(spec.pruner),
                load_if_exists=True,
            )
            self._compare()

    def claim(self) -> Claim | Nothing:
        """The next trial: one that a dead process left, or a new one."""
        with self._lock.held("claim"):
            trials = self.study.get_trials(deepcopy=False)
            for trial in trials:
                if trial.state is TrialState.RUNNING and trial.number not in self._held and self._abandoned(trial):
                    return self._claimed(Trial(self.study, trial._trial_id), adopted=True)
            unfinished = [trial for trial in trials if trial.state in _UNFINISHED]
            waiting = any(trial.state is TrialState.WAITING for trial in unfinished)
            full = sum(self._counts(trial) for trial in trials) + len(unfinished) >= self._spec.trials
            sampler = None if full and not waiting else self._sampler(trials)
            if sampler is not None:
                self.study.sampler = sampler
            elif not waiting:
                return Nothing.WAIT if unfinished else Nothing.DONE
            return self._claimed(self.study.ask(), adopted=False)

    def tell(self, claim: Claim, told: Told) -> None:
        """End a trial with what it came to."""
        trial = claim.trial
        known = trial.constraints
        for name, violation in told.constraints.items():
            if name not in known:  # told by a process that died in the middle of telling
                trial.set_constraint(name, violation)
        for key, value in {**told.notes, OUTCOME: told.outcome, REASON: told.reason}.items():
            trial.set_user_attr(key, value)
        state = _STATES[told.state]
        values = list(told.values) if state is TrialState.COMPLETE else None
        self.study.tell(trial, values, state=None if values else state, skip_if_finished=True)
        self._ended_here.add(trial.number)
        self._held.pop(trial.number, None)

    def release(self, claim: Claim) -> None:
        """Give a trial back: whoever comes next takes it over with its parameters."""
        claim.trial.set_user_attr(OWNER, None)
        self._held.pop(claim.trial.number, None)

    def beat(self) -> None:
        """Say that this process lives; to be called every minute or so while it holds trials."""
        for trial in list(self._held.values()):
            trial.set_user_attr(HEARTBEAT, time.time())

    def _compare(self) -> None:
        """The study is this search's, or new."""
        wanted = self._spec.identity()
        given = self.study.user_attrs.get(IDENTITY)
        if given is None and not self.study.get_trials(deepcopy=False):
            self.study.set_user_attr(IDENTITY, json.dumps(wanted, sort_keys=True))
            return
        remedy = "give the search another name or another --storage, or ask for the same"
        if given is None:
            raise UsageError(f"the storage has a study '{self._spec.name}' that ganbench did not make; {remedy}")
        before: dict[str, Any] = json.loads(given)
        for part, value in json.loads(json.dumps(wanted)).items():
            if before.get(part) != value:
                raise UsageError(f"study '{self._spec.name}' has other {part}: {_difference(before.get(part), value)}; "
                                 f"{remedy}")  # fmt: skip

    def _abandoned(self, trial: FrozenTrial) -> bool:
        owner = Owner.read(trial.user_attrs.get(OWNER))
        # Claims are made under the lock: who died before it wrote its name is not alive now.
        return owner is None or not owner.lives(trial.user_attrs.get(HEARTBEAT, 0.0), time.time(), GRACE)

    def _claimed(self, trial: Trial, *, adopted: bool) -> Claim:
        trial.set_user_attr(HEARTBEAT, time.time())
        trial.set_user_attr(OWNER, self.owner.plain())
        params = suggest(trial, self._spec.space)
        self._held[trial.number] = trial
        return Claim(trial, params, adopted)

    def _counts(self, trial: FrozenTrial) -> bool:
        """Whether a trial is one of those asked for: it told something, or it was ended here."""
        if trial.state is TrialState.FAIL:
            return trial.user_attrs.get(OUTCOME) in _RESULTS or trial.number in self._ended_here
        return trial.state in (TrialState.COMPLETE, TrialState.PRUNED)

    def _sampler(self, trials: list[FrozenTrial]) -> BaseSampler | None:
        """For the next trial; None where every point was proposed."""
        spec = self._spec
        seen: set[Point] = set()
        for trial in trials:
            place = spec.space.place(trial.params)
            if place is not None and (trial.state in _UNFINISHED or self._counts(trial)):
                seen.add(place)
        exhaustive = self.sampler in EXHAUSTIVE
        rest = left(spec.space, seen, spec.size or 0) if exhaustive else left(spec.space, seen)
        if rest == []:
            return None
        if exhaustive and rest:
            return Given(in_random_order(rest, spec.study_id)[0], self._distributions)
        inner = seeded(self.sampler, spec.study_id, len(trials), spec.trials)
        seed = derive_seed("search redraw", spec.study_id, len(trials)) % 2**32
        return Unseen(inner, spec.space, self._distributions, seen, seed)


def _difference(before: Any, now: Any) -> str:
    """The first fields that differ, in a line."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
        return "; ".join(f"{key} was {before.get(key)}, now {now.get(key)}" for key in keys[:3])
    return f"was {before}, now {now}"
