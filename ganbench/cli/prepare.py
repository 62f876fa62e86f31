"""From an experiment's fields to a sweep whose dataset and sources are settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ganbench.cli.sources import with_sources
from ganbench.errors import ExperimentError
from ganbench.execute.beforehand import first_present
from ganbench.execute.local import LocalExecutor
from ganbench.spec.dataset import parse_dataset
from ganbench.spec.experiment import dataset_choices, find_experiment
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
        position = executor.ask(first_present, specs)
        if position is None:
            names = ", ".join(spec.name for spec in specs)
            raise ExperimentError(f"{where}: none of the datasets {names} is there; see --data-root and --download")
        fields = {**fields, "dataset": choices[position]}
        if position > 0:
            absent = ", ".join(spec.name for spec in specs[:position])
            lines.append(f"dataset {specs[position].name} is taken: {absent} not found (see --data-root)")
    sweep = SweepSpec.from_fields(fields, where)
    folder = _folder_of(where)
    return sweep.model_copy(update={"arms": tuple(_with_sources(arm, folder) for arm in sweep.arms)}), lines


def _with_sources(arm: RunSpec, beside: Path) -> RunSpec:
    """A user's files by absolute path, with the hash of what they hold."""
    parts = {field: with_sources(part, beside, field) for field, part in arm.foreign().items()}
    return arm.model_copy(update=parts)


def _folder_of(where: str) -> Path:
    """Where an experiment lies: a file's folder, or that of the shipped ones for the name of one."""
    try:
        return find_experiment(where).parent
    except ExperimentError:  # fields that came from no file
        return Path(where).parent
