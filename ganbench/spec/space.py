"""The space of a search: dotted run keys, and what each may be.

What a sampler sees are primitive values under the names of `Space.parameters`; `Space.settings` turns them back into
values of the run's fields. Ratios are never reduced: `2:2` and `1:1` are two points.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError

from ganbench.errors import ExperimentError
from ganbench.spec.axes import LIST_VALUED
from ganbench.spec.domain import Choices, Domain, Primitive, Real, Whole
from ganbench.spec.ratio import UpdateRatio
from ganbench.spec.strategy import CORRECT, STRATEGIES
from ganbench.spec.sweep import RUN_KEYS
from ganbench.spec.training import OptimizerSpec
from ganbench.spec.value import Value, explain, unknown

Point: TypeAlias = tuple[Primitive, ...]

G_STEPS, D_STEPS, TTUR = "g_steps", "d_steps", "optimizer.ttur"
_RANGE = re.compile(r"\s*(-?[0-9]{1,9})\s*\.\.\s*(-?[0-9]{1,9})\s*", re.ASCII)
# Numbers between whole ones belong to these, also where both bounds are written as whole numbers.
_REAL = frozenset({"g_lr", "d_lr", "ttur", "momentum", "weight_decay"})
# Held equal between the arms of a search: their results could not be compared otherwise.
_HELD_EQUAL = ("budget", "calibration", "dataset", "device", "evaluate", "seed", "seeds", "threads")


class Space(Value):
    """What may differ between the arms of a search. `parameters`: name -> domain, as samplers see them; a ratio given
    by ranges is two parameters, `g_steps` and `d_steps`."""

    parameters: dict[str, Domain]

    @classmethod
    def parse(cls, given: object) -> Space:
        """Read `search.space`.

        Raises:
            ExperimentError: the rule, what was given, and what to do.
        """
        if not isinstance(given, Mapping) or not given:
            raise ExperimentError(
                f"search.space: a space is a mapping of fields to what they may be, such as "
                f"'ratio: {{g: 1..8, d: 1..8}}', got {given!r}"
            )
        parameters: dict[str, Domain] = {}
        for key, domain in given.items():
            where = f"search.space.{key}"
            try:
                parameters |= _parameters(key, domain)
            except ValidationError as error:
                raise explain(error, where) from None
            except ValueError as error:
                raise ExperimentError(f"{where}: {error}") from None
        for name in parameters:
            inner = next((other for other in parameters if other.startswith(f"{name}.")), None)
            if inner is not None:
                raise ExperimentError(f"search.space: {name} and {inner} overlap; list whole values of {name} alone")
        if TTUR in parameters and "optimizer.d_lr" in parameters:
            raise ExperimentError(f"search.space: {TTUR} is d_lr / g_lr; give it or optimizer.d_lr, not both")
        return cls(parameters=parameters)

    @property
    def size(self) -> int | None:
        """How many points there are; None where a range has no step."""
        sizes = [domain.size for domain in self.parameters.values()]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The run's fields that the space decides, dotted."""
        names = {"ratio" if name in (G_STEPS, D_STEPS) else name: None for name in self.parameters}
        return tuple("optimizer.d_lr" if name == TTUR else name for name in names)

    def points(self) -> Iterator[dict[str, Primitive]]:
        """Every point of a finite space, the last parameter running fastest."""
        names = list(self.parameters)
        for values in itertools.product(*(domain.points() for domain in self.parameters.values())):
            yield dict(zip(names, values, strict=True))

    def corners(self) -> Iterator[dict[str, Primitive]]:
        """The first point, and those that differ from it in one parameter: its ends, or each of its choices."""
        first = {name: _ends(domain)[0] for name, domain in self.parameters.items()}
        yield first
        for name, domain in self.parameters.items():
            for value in _ends(domain)[1:]:
                yield {**first, name: value}

    def place(self, params: Mapping[str, Primitive]) -> Point | None:
        """What two sets of parameters share if and only if they are one point; None where a parameter is missing.

        On a range with a step, rounding errors are no difference.
        """
        if any(name not in params for name in self.parameters):
            return None
        return tuple(_step_of(domain, params[name]) for name, domain in self.parameters.items())

    def settings(self, params: Mapping[str, Primitive]) -> dict[str, Any]:
        """Dotted fields of the run -> their values, for parameters as a sampler gave them."""
        found: dict[str, Any] = {}
        for name, domain in self.parameters.items():
            found[name] = domain.value(params[name]) if isinstance(domain, Choices) else params[name]
        if G_STEPS in found:
            found["ratio"] = f"{found.pop(G_STEPS)}:{found.pop(D_STEPS)}"
        return found


def _parameters(key: object, given: object) -> dict[str, Domain]:
    head, *path = str(key).split(".")
    if head in _HELD_EQUAL:
        raise ValueError(f"{head} is held equal between the arms of a search; set it outside search.space")
    if head in OptimizerSpec.model_fields or head == "ttur":
        raise ValueError(f"unknown field '{head}': did you mean 'optimizer.{head}'?")
    if head not in RUN_KEYS:
        raise ValueError(unknown("field", head, sorted(set(RUN_KEYS) - set(_HELD_EQUAL))))
    if head == "ratio":
        if path:
            raise ValueError("write ratio: {g: 1..8, d: 1..8}, or ratio: [1:1, 2:1]")
        return _ratio(given)
    if head == "strategy":
        given = _strategies(given)
    return {str(key): _domain(str(key).rpartition(".")[2], given)}


def _ratio(given: object) -> dict[str, Domain]:
    if isinstance(given, list):
        return {"ratio": Choices(values=tuple(str(UpdateRatio.parse(text)) for text in given))}
    if not isinstance(given, Mapping) or set(given) != {"g", "d"}:
        raise ValueError(f"ratios are a list such as [1:1, 5:1], or two ranges {{g: 1..8, d: 1..8}}, got {given!r}")
    found: dict[str, Domain] = {}
    for side, name in (("g", G_STEPS), ("d", D_STEPS)):
        one = given[side]
        domain = Whole(low=one, high=one) if isinstance(one, int) else _domain(name, one)
        if not isinstance(domain, Whole) or domain.low < 1:
            raise ValueError(f"{side} is a range of whole numbers from 1, such as 1..8, got {one!r}")
        found[name] = domain
    return found


def _strategies(given: object) -> object:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list):
        return given
    expanded = [one for name in names for one in (CORRECT if name == "correct" else [name])]
    wrong = next((n for n in expanded if n == "all" or (isinstance(n, str) and n in STRATEGIES and n not in CORRECT)),
                 None)  # fmt: skip
    if wrong is not None:
        raise ValueError(
            f"a search takes strategies that train on the gradients they claim, and '{wrong}' "
            f"{'holds controls' if wrong == 'all' else 'is a control'}; take correct, or of {', '.join(CORRECT)}"
        )
    return list(dict.fromkeys(expanded))


def _domain(last: str, given: object) -> Domain:
    """`last` is the last part of the field's name."""
    if isinstance(given, list):
        if last in LIST_VALUED and not all(isinstance(item, list) for item in given):
            raise ValueError(f"choices of {last} are a list of lists, such as [[0.5, 0.999], [0, 0.9]], got {given!r}")
        return Choices(values=tuple(given))
    if isinstance(given, str) and (match := _RANGE.fullmatch(given)):
        low, high = int(match[1]), int(match[2])
        return Real(low=low, high=high) if last in _REAL else Whole(low=low, high=high)
    if isinstance(given, Mapping) and {"low", "high"} <= set(given):
        for key in given:
            if key not in ("low", "high", "step", "log"):
                raise ValueError(unknown("key", key, ("low", "high", "step", "log")))
        numbers = [given[key] for key in ("low", "high", "step") if given.get(key) is not None]
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValueError(f"low, high and step are numbers, got {number!r}")
        whole = last not in _REAL and all(isinstance(number, int) for number in numbers)
        return Whole.model_validate(given) if whole else Real.model_validate(given)
    raise ValueError(
        f"a field of the space is a list of values, whole numbers such as 1..8, or {{low: …, high: …, log: true}}, "
        f"got {given!r}; one value alone stands outside search.space"
    )


def _ends(domain: Domain) -> list[Primitive]:
    if isinstance(domain, Choices):
        return domain.points()
    return [domain.low] if domain.low == domain.high else [domain.low, domain.high]


def _step_of(domain: Domain, value: Primitive) -> Primitive:
    if isinstance(domain, Real) and domain.step is not None and isinstance(value, int | float):
        return round((value - domain.low) / domain.step)
    return value
