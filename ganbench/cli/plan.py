"""`ganbench plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from ganbench.cli.options import experiment_fields, experiment_options

if TYPE_CHECKING:
    from rich.console import Console

    from ganbench.execute.forecast import Forecast
    from ganbench.spec.run import RunSpec
    from ganbench.spec.sweep import SweepSpec

_NONE: Mapping[str, list[str]] = MappingProxyType({})


@click.command("plan")
@experiment_options
@click.option("--memory", "card", metavar="SIZE", help="Say which arms fit, such as 24GiB; default: the GPU's own.")
@click.option("--max-batch", is_flag=True, help="The largest batch_size that fits --memory, for each arm.")
@click.option("--no-forecast", is_flag=True, help="Leave the forecast of memory out: quicker.")
def command(card: str | None, max_batch: bool, no_forecast: bool, **experiment: Any) -> None:
    """Show what EXPERIMENT would run and how much memory it needs, without running anything.

    The forecast plays rounds with tensors that have shapes but no values. On the CPU it is equal to the byte to the
    peak of live tensors that a run measures.
    """
    from ganbench.cli.output import console_for
    from ganbench.cli.prepare import sweep_of
    from ganbench.errors import ExperimentError
    from ganbench.execute.forecast import card_bytes, forecasts, largest_batches
    from ganbench.execute.local import LocalExecutor

    fields, where = experiment_fields(**experiment)
    console = console_for()
    executor = LocalExecutor()
    sweep, lines = sweep_of(fields, where, executor)
    limit = parse_size(card) if card else executor.ask(card_bytes)
    if max_batch and limit is None:
        raise ExperimentError("--max-batch needs to know the memory: there is no GPU here, give --memory such as 24GiB")
    for line in lines:
        console.print(line, markup=False)
    arms = sorted(sweep.arms, key=lambda arm: arm.ratio)
    columns: dict[str, list[str]] = {}
    if not no_forecast:
        found = executor.ask(forecasts, arms)
        columns |= forecast_columns(found, limit) if found else {"peak": ["not known"] * len(arms)}
    if max_batch:
        assert limit is not None
        batches = executor.ask(largest_batches, arms, limit)
        columns["largest batch"] = [str(batch) if batch else "-" for batch in batches or [None] * len(arms)]
    print_plan(console, sweep, arms, columns)


def parse_size(text: str) -> int:
    """Bytes from text such as `24GiB` or `500MiB`.

    Raises:
        ExperimentError: it is no size.
    """
    import re

    from ganbench.errors import ExperimentError

    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)\s*", text, re.ASCII)
    if match is None:
        raise ExperimentError(f"a size is a number with a unit such as 24GiB, 500MiB or 24GB, got '{text}'")
    power = "KMGT".index(match[2][0]) + 1
    return int(float(match[1]) * (1024 if "i" in match[2] else 1000) ** power)


def forecast_columns(found: Sequence[Forecast], limit: int | None) -> dict[str, list[str]]:
    """Columns with each arm's peaks in MiB, and whether it fits."""
    columns: dict[str, list[str]] = {"peak MiB": [], "G phase": [], "D phase": []}
    if limit is not None:
        columns[f"fits {f'{limit / 2**30:.4g} GiB' if limit >= 2**30 else f'{limit / 2**20:.4g} MiB'}"] = []
    for one in found:
        memory = one.memory
        cells = ["-" if memory else one.reason, "", ""]
        if memory is not None:
            figures = (memory.peak_bytes, memory.phase("g").total, memory.phase("d").total)
            cells = [f"{size / 2**20:.2f}" for size in figures]
        if limit is not None:
            cells.append("-" if memory is None else "fits" if memory.peak_bytes <= limit else "does not fit")
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    return columns


def print_plan(
    console: Console, sweep: SweepSpec, arms: Sequence[RunSpec] | None = None, columns: Mapping[str, list[str]] = _NONE
) -> None:
    """Arms with their realised order of updates, further columns, and how much is to be done."""
    from ganbench.cli.output import table

    console.print(f"{sweep.name}: {sweep.question}", markup=False)
    arms = arms or sorted(sweep.arms, key=lambda arm: arm.ratio)
    rows = [
        (sweep.label(arm), arm.order_text, rounds_of(arm), str(arm.budget), str(arm.expected), *more)
        for arm, *more in zip(arms, *columns.values(), strict=True)
    ]
    table(console, ["arm", "a round", "rounds", "budget", "expected", *columns], rows)
    seeds = ", ".join(str(seed) for seed in sweep.seeds)
    console.print(
        f"{len(sweep.arms)} arms × {len(sweep.seeds)} seeds ({seeds}) = {len(sweep.arms) * len(sweep.seeds)} runs, "
        f"in random blocks by seed; sweep {sweep.sweep_id}",
        markup=False,
    )


def rounds_of(arm: RunSpec) -> str:
    """How many rounds meet the budget; unknown beforehand for seconds."""
    batches = 1 if arm.real_batches == "per_round" else arm.ratio.d
    each = {
        "rounds": 1,
        "g_updates": arm.ratio.g,
        "d_updates": arm.ratio.d,
        "updates": arm.ratio.g + arm.ratio.d,
        "real_images": arm.batch_size * batches,
    }.get(arm.budget.unit)
    return "-" if each is None else str(-(-int(arm.budget.amount) // each))
