"""Options that several commands share, and what they make of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

tracking_uri = click.option(
    "--tracking-uri",
    envvar="MLFLOW_TRACKING_URI",
    default="sqlite:///mlflow.db",
    show_default=True,
    help="MLflow store; also read from MLFLOW_TRACKING_URI.",
)

include_uncertified = click.option(
    "--include-uncertified", is_flag=True, help="Keep strategies that verify did not certify in the table of cost."
)

_EXPERIMENT = (
    click.argument("experiment", default="quickstart"),
    click.option("--ratio", multiple=True, metavar="G:D", help="Generator : discriminator updates; repeatable."),
    click.option("--strategy", multiple=True, metavar="NAME", help="A strategy, 'correct' or 'all'; repeatable."),
    click.option("--device", multiple=True, metavar="DEVICE", help="auto, cpu, cuda or cuda:N; repeatable."),
    click.option("--seeds", metavar="N|A,B,…", help="How many seeds, or which."),
    click.option("--budget", metavar="'N UNIT'", help="Such as '2000 updates'."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of the file; repeatable."),
    click.option("--data-root", type=click.Path(path_type=Path), help="Folder that holds the datasets' files."),
)


def experiment_options(command: F) -> F:
    """The argument EXPERIMENT and the options that lie over its file."""
    for option in reversed(_EXPERIMENT):
        command = option(command)
    return command


def experiment_fields(
    experiment: str,
    ratio: tuple[str, ...],
    strategy: tuple[str, ...],
    device: tuple[str, ...],
    seeds: str | None,
    budget: str | None,
    settings: tuple[str, ...],
    data_root: Path | None,
) -> tuple[dict[str, Any], str]:
    """The fields of an experiment with the command line laid over them, and where they come from.

    Raises:
        ExperimentError: the file or a setting is wrong.
    """
    from ganbench.spec.experiment import find_experiment, override, read_fields

    path = find_experiment(experiment)
    fields = override(read_fields(path), settings)
    for key, values in (("ratio", ratio), ("strategy", strategy), ("device", device)):
        if values:
            fields[key] = list(values)
    if budget is not None:
        fields["budget"] = budget
    if seeds is not None:
        fields["seeds"] = _seeds(seeds)
    if data_root is not None:
        fields["dataset"] = with_root(fields.get("dataset", "digits"), str(data_root))
    return fields, experiment


def _seeds(text: str) -> object:
    from ganbench.errors import ExperimentError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ExperimentError(f"--seeds takes a count or a list such as 0,3,7, got '{text}'") from None
    return numbers if "," in text else numbers[0]


def with_root(dataset: Any, root: str) -> Any:
    """A dataset, or each of several, with its folder of files; generated ones and users' own have none."""
    if isinstance(dataset, list):
        return [with_root(one, root) for one in dataset]
    if isinstance(dataset, str):
        dataset = {"name": dataset}
    if not isinstance(dataset, dict):
        return dataset
    if "first_of" in dataset:
        return {**dataset, "first_of": [with_root(one, root) for one in dataset["first_of"]]}
    name = str(dataset.get("name"))
    return dataset if name in ("ring8", "grid25") or ":" in name else {**dataset, "root": root}
