"""A sweep: a set of arms × seeds, in the order in which they are run."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationError

from ganbench.errors import ExperimentError
from ganbench.spec.axes import axes_of, expand
from ganbench.spec.place import is_place, short_place
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import REFERENCE
from ganbench.spec.value import Value, canonical_json, content_hash, explain, unknown

OWN_KEYS = ("name", "question", "seeds", "calibrate", "search")
RUN_KEYS = tuple(name for name in RunSpec.model_fields if name not in ("seed", "calibration"))
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\\ud800-\udfff]{1,200}")


def _plain_name(name: str) -> str:
    # The name becomes an MLflow experiment and part of file names.
    if not _NAME.fullmatch(name) or name != name.strip() or name.startswith("."):
        raise ValueError(
            f"a name is 1 to 200 characters without slashes or control characters and does not begin with a "
            f"dot, got {name!r}"
        )
    return name


class SweepSpec(Value):
    """What one experiment file asks for, every arm spelled out."""

    name: Annotated[str, AfterValidator(_plain_name)]
    question: str = ""
    arms: tuple[RunSpec, ...]
    seeds: tuple[int, ...]
    axes: dict[str, list[Any]]
    # The id under which the sweep was asked for, kept when its devices and datasets are settled on a machine.
    asked_as: str | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], where: str) -> SweepSpec:
        """Validate the fields of an experiment once. `where` names their source in messages.

        Raises:
            ExperimentError: what is wrong, what was given, and what is known.
        """
        for key in fields:
            if key not in OWN_KEYS and key not in RUN_KEYS:
                raise ExperimentError(f"{where}: {unknown('key', key, [*OWN_KEYS, *RUN_KEYS])}")
        run_fields = {key: value for key, value in fields.items() if key in RUN_KEYS}
        run_fields.setdefault("device", "auto")
        arms: list[RunSpec] = []
        seen: set[str] = set()
        try:
            for plain in expand(run_fields):
                arm = RunSpec.model_validate(plain)
                if arm.arm_key not in seen:
                    seen.add(arm.arm_key)
                    arms.append(arm)
            if _flag(fields.get("calibrate", False)):
                copies = [arm.model_copy(update={"calibration": True}) for arm in arms if arm.strategy == REFERENCE]
                arms += copies
            return cls(
                name=fields.get("name", "sweep"),
                question=fields.get("question", ""),
                arms=tuple(arms),
                seeds=_seeds(fields.get("seeds", 3)),
                axes=axes_of(run_fields),
            )
        except ValidationError as error:
            raise explain(error, where) from None
        except UnicodeEncodeError as error:  # half a surrogate pair, which no message of pydantic can hold
            raise ExperimentError(f"{where}: text must be Unicode, got {error.object!a}") from None
        except ExperimentError as error:
            raise ExperimentError(f"{where}: {error}") from None

    @property
    def sweep_id(self) -> str:
        """Content hash of the arms and seeds as asked for; neither name, question nor machine enters."""
        if self.asked_as is not None:
            return self.asked_as
        return content_hash({"arms": sorted(arm.arm_key for arm in self.arms), "seeds": sorted(self.seeds)}, 12)

    def runs(self) -> list[RunSpec]:
        """All runs, in random blocks: a block holds every arm once with one seed, so that drift of the machine
        hits all arms alike. The order follows from the content alone."""
        ordered: list[RunSpec] = []
        for seed in self.seeds:
            block = [arm.model_copy(update={"seed": seed}) for arm in sorted(self.arms, key=lambda a: a.arm_key)]
            random.Random(derive_seed("order", self.sweep_id, seed)).shuffle(block)
            ordered.extend(block)
        return ordered

    def settled(self, arms: Sequence[RunSpec]) -> SweepSpec:
        """The same sweep with arms whose devices and datasets are settled on this machine."""
        unique = {arm.arm_key: arm for arm in arms}
        return self.model_copy(update={"arms": tuple(unique.values()), "asked_as": self.sweep_id})

    def label(self, arm: RunSpec) -> str:
        """An arm's short name: ratio, strategy and device, then whatever else differs between the arms."""
        parts = [str(arm.ratio), arm.strategy + (" (A/A)" if arm.calibration else ""), arm.device]
        for axis in self.axes:
            if axis.split(".")[0] not in ("ratio", "strategy", "device"):
                parts.append(_axis_text(arm, axis))
        return " ".join(dict.fromkeys(part for part in parts if part))


def _axis_text(arm: RunSpec, axis: str) -> str:
    value: Any = arm
    for part in axis.split("."):
        value = getattr(value, "shape" if part == "dim" else part, None)
    if isinstance(value, Value):
        value = value.name if hasattr(value, "name") else canonical_json(value.model_dump(mode="json"))
    if isinstance(value, tuple):
        value = "×".join(str(part) for part in value)
    if is_place(value):
        value = short_place(value)
    last = axis.split(".")[-1]
    return str(value) if axis in ("model", "dataset", "loss") else f"{last}={value}"


def _flag(given: object) -> bool:
    if not isinstance(given, bool):
        raise ExperimentError(f"calibrate is true or false, got {given!r}")
    return given


def _seeds(given: object) -> tuple[int, ...]:
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= 10_000:
        return tuple(range(given))
    if isinstance(given, list) and given:
        whole = [s for s in given if isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 2**31]
        if len(whole) == len(given) == len(set(whole)):
            return tuple(whole)
    raise ExperimentError(f"seeds are a count from 1 to 10000 or a list of different whole numbers, got {given!r}")
