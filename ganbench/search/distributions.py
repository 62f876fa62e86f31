"""A search's space as Optuna sees it. Optuna gets primitive values only: others break the resumption of a study."""

from __future__ import annotations

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial

from ganbench.spec.domain import Choices, Domain, Primitive, Whole
from ganbench.spec.space import Space


def distribution(domain: Domain) -> BaseDistribution:
    """The distribution of one parameter."""
    if isinstance(domain, Choices):
        return CategoricalDistribution(domain.points())
    if isinstance(domain, Whole):
        return IntDistribution(domain.low, domain.high, log=domain.log, step=domain.step)
    return FloatDistribution(domain.low, domain.high, log=domain.log, step=domain.step)


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """The distribution of every parameter, by name."""
    return {name: distribution(domain) for name, domain in space.parameters.items()}


def suggest(trial: Trial, space: Space) -> dict[str, Primitive]:
    """Let the study's sampler choose every parameter of a trial."""
    chosen: dict[str, Primitive] = {}
    for name, domain in space.parameters.items():
        if isinstance(domain, Choices):
            chosen[name] = trial.suggest_categorical(name, domain.points())
        elif isinstance(domain, Whole):
            chosen[name] = trial.suggest_int(name, domain.low, domain.high, step=domain.step, log=domain.log)
        else:
            chosen[name] = trial.suggest_float(name, domain.low, domain.high, step=domain.step, log=domain.log)
    return chosen
