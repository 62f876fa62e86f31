"""A search: which arms a study may propose, what they are judged by, and how many trials are made in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from ganbench.errors import ExperimentError
from ganbench.spec.axes import axes_of
from ganbench.spec.domain import Primitive
from ganbench.spec.experiment import lay
from ganbench.spec.objective import Constraint, Objective, parse_constraints, parse_objectives
from ganbench.spec.run import RunSpec
from ganbench.spec.space import TTUR, Space
from ganbench.spec.sweep import OWN_KEYS, RUN_KEYS, SweepSpec
from ganbench.spec.value import Value, content_hash, explain, unknown

SAMPLERS = ("auto", "tpe", "gp", "nsga2", "grid", "brute", "random")
PRUNERS = ("none", "median", "halving")
# Grid and brute force go over every point once.
EXHAUSTIVE = ("grid", "brute")
SEARCH_KEYS = (
    "space", "objective", "constraints", "trials", "sampler", "pruner", "seeds", "aggregate", "quality", "target",
    "confirm", "storage",
)  # fmt: skip
DEFAULT_STORAGE = "sqlite:///optuna.db"
# So many arms are tried out beforehand, where that is all of them.
_ALL_TRIED = 500


def _one_of(what: str, known: tuple[str, ...]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in known:
            raise ValueError(unknown(what, name, known))
        return name

    return AfterValidator(check)


class Confirm(Value):
    """At the end, so many of the best arms get so many seeds in all, so that the winner is not the luckiest draw."""

    top: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    seeds: Annotated[int, Field(strict=True, ge=2, le=1000)] = 10


class SearchSpec(Value):
    """What a `search:` block asks for. `base`: the run's fields that stay as they are, as given.

    A trial is one arm with every one of `seeds`; its value is their `aggregate`.
    """

    name: str
    question: str = ""
    base: dict[str, Any]
    space: Space
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...] = ()
    seeds: tuple[int, ...]
    aggregate: Literal["mean", "median"] = "mean"
    trials: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 50
    sampler: Annotated[str, _one_of("sampler", SAMPLERS)] = "auto"
    pruner: Annotated[str, _one_of("pruner", PRUNERS)] = "none"
    confirm: Confirm | None = None
    storage: str = DEFAULT_STORAGE
    # The arm at the space's first point once its device, dataset and files are settled on a machine.
    first: RunSpec | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], where: str) -> SearchSpec:
        """Validate an experiment's fields with their `search` block once. `where` names their source in messages.

        Raises:
            ExperimentError: what is wrong, what was given, and what to do.
        """
        block = _block(fields, where)
        base = {key: value for key, value in fields.items() if key in RUN_KEYS}
        common = _common(fields, block, where)
        try:
            space = Space.parse(block.get("space"))
            _no_axes(base, space)
            first = _arm(base, space, next(space.corners()))
        except ValidationError as error:
            raise explain(error, where) from None
        except UnicodeEncodeError as error:  # half a surrogate pair, which no message of pydantic can hold
            raise ExperimentError(f"{where}: text must be Unicode, got {error.object!a}") from None
        except ExperimentError as error:
            raise ExperimentError(f"{where}: {error}") from None
        try:
            search = cls(
                **{key: block[key] for key in ("aggregate", "trials", "sampler", "pruner", "storage") if key in block},
                **common,
                base=base,
                space=space,
                objectives=parse_objectives(
                    block.get("objective", "quality"), first.dataset, block.get("quality", "final"), block.get("target")
                ),
                constraints=parse_constraints(block.get("constraints")),
                confirm=_confirm(block.get("confirm")),
            )
            search._check()
        except ValidationError as error:
            raise explain(error, f"{where}: search") from None
        except (ExperimentError, ValueError) as error:
            raise ExperimentError(f"{where}: {error}") from None
        return search

    @property
    def size(self) -> int | None:
        """How many different arms there are; None where a range of the space has no step."""
        return self.space.size

    def arm(self, params: Mapping[str, Primitive]) -> RunSpec:
        """The arm at a point of the space. Its device, dataset and files are not settled yet.

        Raises:
            ExperimentError: there is no such arm, for example because two of its fields do not fit each other.
        """
        try:
            return _arm(self.base, self.space, params)
        except ValidationError as error:
            raise explain(error, f"search.space at {dict(params)}") from None

    def settled(self, first: RunSpec) -> SearchSpec:
        """The same search, known by an arm whose device, dataset and files are settled: a user's file that has changed
        is then another search. `first` is made from `arm(next(space.corners()))`."""
        return self.model_copy(update={"first": first})

    def identity(self) -> dict[str, Any]:
        """What makes a study this one, part by part, as plain values. Trials, sampler and pruner are no part of it."""
        first = self.first or self.arm(next(self.space.corners()))
        return {
            "base": {key: value for key, value in first.content().items() if key != "seed"},
            "space": self.space.model_dump(mode="json")["parameters"],
            "objectives": [objective.model_dump(mode="json") for objective in self.objectives],
            "constraints": [constraint.model_dump(mode="json") for constraint in self.constraints],
            "seeds": {"each": list(self.seeds), "aggregate": self.aggregate},
        }

    @property
    def study_id(self) -> str:
        """Content hash of `identity()`."""
        return content_hash(self.identity(), 12)

    def _check(self) -> None:
        if self.pruner != "none" and len(self.objectives) > 1:
            raise ExperimentError(
                f"search.pruner: pruning needs a single objective, got {len(self.objectives)} with {self.pruner}; "
                "set pruner: none"
            )
        if self.pruner != "none" and self.objectives[0].name != "quality":
            raise ExperimentError(
                f"search.pruner: trials are pruned by their quality on the way, and the objective is "
                f"{self.objectives[0].name}; set pruner: none"
            )
        if self.sampler in EXHAUSTIVE and self.size is None:
            endless = [name for name, domain in self.space.parameters.items() if domain.size is None]
            raise ExperimentError(
                f"search.sampler: {self.sampler} goes over every point, and {', '.join(endless)} has endlessly many; "
                "give it a step or a list of values"
            )
        size = self.size
        tried = self.space.points() if size is not None and size <= _ALL_TRIED else self.space.corners()
        for params in tried:
            self.arm(params)


def _block(fields: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for key in fields:
        if key not in OWN_KEYS and key not in RUN_KEYS:
            raise ExperimentError(f"{where}: {unknown('key', key, [*OWN_KEYS, *RUN_KEYS])}")
    block = fields.get("search")
    if block is None:
        raise ExperimentError(f"{where}: a search needs a block 'search' with its space; see search_ratio.yaml")
    if not isinstance(block, Mapping):
        raise ExperimentError(f"{where}: search is a mapping with the keys {', '.join(SEARCH_KEYS)}, got {block!r}")
    for key in block:
        if key not in SEARCH_KEYS:
            raise ExperimentError(f"{where}: search: {unknown('key', key, SEARCH_KEYS)}")
    if fields.get("calibrate"):
        raise ExperimentError(f"{where}: calibrate: true is for sweeps; leave it out of a search")
    if "seeds" in fields and "seeds" in block:
        raise ExperimentError(f"{where}: give seeds once: as the experiment's seeds, or as search.seeds")
    return block


def _no_axes(base: Mapping[str, Any], space: Space) -> None:
    for axis, values in axes_of(base).items():
        if axis in space.keys:
            raise ExperimentError(f"{axis} is in search.space and has several values outside it, {values}; leave one")
        raise ExperimentError(f"{axis}: a search takes one value, got {values}; put it into search.space: {axis}")


def _common(fields: Mapping[str, Any], block: Mapping[str, Any], where: str) -> dict[str, Any]:
    # Name, question and seeds are those of a sweep, and so are their rules.
    plain = {key: fields[key] for key in ("name", "question") if key in fields}
    seeds = block.get("seeds", fields.get("seeds", 3))
    sweep = SweepSpec.from_fields({"name": "search", **plain, "seeds": seeds}, where)
    return {"name": sweep.name, "question": sweep.question, "seeds": sweep.seeds}


def _confirm(given: object) -> Confirm | None:
    if given is None or given is False:
        return None
    if given is True:
        return Confirm()
    if isinstance(given, int):
        return Confirm(top=given)
    return Confirm.model_validate(given)


def _arm(base: Mapping[str, Any], space: Space, params: Mapping[str, Primitive]) -> RunSpec:
    fields: dict[str, Any] = {"device": "auto", **base}
    settings = space.settings(params)
    ttur = settings.pop(TTUR, None)
    for key, value in settings.items():
        fields = lay(fields, key, value)
    arm = RunSpec.model_validate(fields)
    if ttur is not None:
        arm = RunSpec.model_validate(lay(fields, "optimizer.d_lr", ttur * arm.optimizer.g_lr))
    return arm
