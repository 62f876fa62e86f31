"""What a search is after, and what its arms must keep to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from ganbench.spec.dataset import AnyDataset, PointSpec
from ganbench.spec.value import Value, unknown

Direction = Literal["minimize", "maximize"]
DIRECTIONS = ("minimize", "maximize")
# Name -> key of the figure and direction. The figure of quality, and its direction, are the dataset's.
_FIGURES: dict[str, tuple[str | None, Direction | None]] = {
    "quality": (None, None),
    "time_to_target": (None, "minimize"),
    "throughput": ("throughput/updates_per_second", "maximize"),
    "memory": ("memory/live_peak_mib", "minimize"),
    "seconds": ("time/train_s", "minimize"),
}
OBJECTIVES = tuple(_FIGURES)
CONSTRAINTS = ("memory", "seconds")
_KEY = re.compile(r"[a-z_0-9]+/[a-z_0-9]+", re.ASCII)
_BYTES = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)\s*", re.ASCII)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


class Objective(Value):
    """One figure and which way it is better.

    `read`: `final` is the run's last value of the figure; `best` the best value among the run's evaluations, the last
    one included; `time_to_target` the seconds of training until the first evaluation at which quality has reached
    `target`. `key` is the figure, such as `time/round_ms`; None for the dataset's primary metric of quality.
    """

    name: str
    key: str | None
    direction: Direction
    read: Literal["final", "best", "time_to_target"] = "final"
    # Quality to be reached, and whether less of it is better.
    target: float | None = None
    target_direction: Direction | None = None

    @model_validator(mode="after")
    def _target_where_needed(self) -> Objective:
        if (self.read == "time_to_target") != (self.target is not None):
            raise ValueError("objective time_to_target needs the quality to be reached: set search.target, such as 0.5")
        return self


class Constraint(Value):
    """`key` of every seed's run is to stay at or below `bound`, in the key's own unit (MiB, seconds)."""

    name: str
    key: str
    bound: float

    def excess(self, measured: float) -> float:
        """By which share of the bound it is passed; 0 or less where it is kept. Shares, because samplers add up the
        violations of all constraints, and MiB and seconds have no sum."""
        return measured / self.bound - 1


def quality_direction(dataset: AnyDataset) -> Direction:
    """Which way a dataset's primary metric is better: the share of good points is large, Fréchet distances small."""
    return "maximize" if isinstance(dataset, PointSpec) else "minimize"


def parse_objectives(given: object, dataset: AnyDataset, read: object, target: object) -> tuple[Objective, ...]:
    """Read `search.objective`: a name, a list of names, or `{metric: KEY, direction: minimize}`, with
    `search.quality` (`final` or `best`) and `search.target`.

    Raises:
        ValueError: the rule, what was given, and what to do.
    """
    if read not in ("final", "best"):
        raise ValueError(f"search.quality is final or best (the best of the run's evaluations), got {read!r}")
    if target is not None and (isinstance(target, bool) or not isinstance(target, int | float)):
        raise ValueError(f"search.target is a number, got {target!r}")
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    several = names if isinstance(names, list) else [names]
    if not several:
        raise ValueError("search.objective needs at least one objective, got an empty list")
    found = tuple(_objective(one, dataset, str(read), target) for one in several)
    labels = [objective.name for objective in found]
    if len(set(labels)) < len(labels):
        raise ValueError(f"search.objective: each objective once, got {', '.join(labels)}")
    if target is not None and "time_to_target" not in labels:
        raise ValueError("search.target is for objective time_to_target; leave it out, or add that objective")
    return found


def _objective(given: object, dataset: AnyDataset, read: str, target: float | None) -> Objective:
    if isinstance(given, Mapping):
        return _named_figure(given)
    if not isinstance(given, str) or given not in _FIGURES:
        raise ValueError(
            "search.objective: "
            + unknown("objective", given, OBJECTIVES)
            + ", or {metric: time/round_ms, direction: minimize}"
        )
    key, direction = _FIGURES[given]
    towards = quality_direction(dataset)
    if given == "time_to_target":
        if target is None:
            raise ValueError("objective time_to_target needs the quality to be reached: set search.target, such as 0.5")
        return Objective(
            name=given, key=None, direction="minimize", read="time_to_target", target=float(target),
            target_direction=towards,
        )  # fmt: skip
    rule: Any = read if given == "quality" else "final"
    return Objective(name=given, key=key, direction=direction or towards, read=rule)


def _named_figure(given: Mapping[Any, Any]) -> Objective:
    for key in given:
        if key not in ("metric", "direction"):
            raise ValueError("search.objective: " + unknown("key", key, ("metric", "direction")))
    metric, direction = given.get("metric"), given.get("direction")
    if not isinstance(metric, str) or not _KEY.fullmatch(metric):
        raise ValueError(f"search.objective: metric is a figure's key such as time/round_ms, got {metric!r}")
    if direction not in DIRECTIONS:
        raise ValueError(f"search.objective: direction of {metric} is minimize or maximize, got {direction!r}")
    return Objective(name=metric, key=metric, direction=direction)


def parse_constraints(given: object) -> tuple[Constraint, ...]:
    """Read `search.constraints`: `{memory: 8GiB, seconds: 60}`, or the key of any figure and its largest value.

    Raises:
        ValueError: the rule, what was given, and what to do.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise ValueError(f"search.constraints is a mapping such as {{memory: 8GiB, seconds: 60}}, got {given!r}")
    found = []
    for name, bound in given.items():
        if name == "memory":
            found.append(Constraint(name=name, key="memory/live_peak_mib", bound=_mebibytes(bound)))
        elif name == "seconds" or (isinstance(name, str) and _KEY.fullmatch(name)):
            key = "time/train_s" if name == "seconds" else name
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < float("inf"):
                raise ValueError(f"search.constraints.{name}: a bound is a number above 0, got {bound!r}")
            found.append(Constraint(name=name, key=key, bound=float(bound)))
        else:
            raise ValueError(f"search.constraints: {unknown('constraint', name, CONSTRAINTS)}, or a figure's key")
    return tuple(sorted(found, key=lambda constraint: constraint.name))


def _mebibytes(given: object) -> float:
    match = _BYTES.fullmatch(given) if isinstance(given, str) else None
    amount = 0.0
    if match is not None:
        amount = float(match[1]) * (1024 if "i" in match[2] else 1000) ** _POWERS[match[2][0]] / 2**20
    if amount <= 0:
        raise ValueError(f"search.constraints.memory is an amount above 0 with its unit, such as 8GiB, got {given!r}")
    return amount
