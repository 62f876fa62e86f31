"""From an experiment's fields to a sweep whose dataset and sources are settled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ganbench.errors import ExperimentError, UserCodeError
from ganbench.execute import work
from ganbench.execute.local import LocalExecutor
from ganbench.spec.dataset import parse_dataset
from ganbench.spec.experiment import dataset_choices
from ganbench.spec.model import UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec


def sweep_of(fields: dict[str, Any], where: str, executor: LocalExecutor) -> tuple[SweepSpec, list[str]]:
    """Validate an experiment's fields, choosing the first dataset that is there where it offers several.

    Raises:
        UsageError: what is wrong, and what to do.
    """
    lines: list[str] = []
    choices = dataset_choices(fields)
    if choices:
        try:
            specs = [parse_dataset(choice) for choice in choices]
        except ValueError as error:
            raise ExperimentError(f"{where}: dataset.first_of: {error}") from None
        position = executor.ask(work.first_present, specs)
        if position is None:
            names = ", ".join(spec.name for spec in specs)
            raise ExperimentError(f"{where}: none of the datasets {names} is there; see --data-root and --download")
        fields = {**fields, "dataset": choices[position]}
        if position > 0:
            absent = ", ".join(spec.name for spec in specs[:position])
            lines.append(f"dataset {specs[position].name} is taken: {absent} not found (see --data-root)")
    sweep = SweepSpec.from_fields(fields, where)
    return sweep.model_copy(update={"arms": tuple(_with_sources(arm, Path(where)) for arm in sweep.arms)}), lines


def _with_sources(arm: RunSpec, experiment: Path) -> RunSpec:
    """A user's files by absolute path, with the hash of what they hold. Relative ones are sought from the working
    directory, then beside the experiment file."""
    model = arm.model
    if not isinstance(model, UserModelSpec):
        return arm
    places, sources = {}, {}
    for role in ("generator", "discriminator"):
        where, colon, name = getattr(model, role).rpartition(":")
        places[role] = getattr(model, role)
        if where.endswith(".py"):
            found = next((p for p in (Path(where), experiment.parent / where) if p.is_file()), None)
            if found is None:
                raise UserCodeError(f"{role}: no file '{where}' here or beside '{experiment}'")
            places[role] = f"{found.resolve()}{colon}{name}"
            sources[found.name] = hashlib.sha256(found.read_bytes()).hexdigest()
    return arm.model_copy(update={"model": model.model_copy(update={**places, "sources": sources})})
