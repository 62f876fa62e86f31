"""`ganbench plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ganbench.cli.options import experiment_fields, experiment_options

if TYPE_CHECKING:
    from rich.console import Console

    from ganbench.spec.run import RunSpec
    from ganbench.spec.sweep import SweepSpec


@click.command("plan")
@experiment_options
def command(**experiment: Any) -> None:
    """Show what EXPERIMENT would run, without running anything."""
    from ganbench.cli.output import console_for
    from ganbench.cli.prepare import sweep_of
    from ganbench.execute.local import LocalExecutor

    fields, where = experiment_fields(**experiment)
    console = console_for()
    sweep, lines = sweep_of(fields, where, LocalExecutor())
    for line in lines:
        console.print(line, markup=False)
    print_plan(console, sweep)


def print_plan(console: Console, sweep: SweepSpec) -> None:
    """Arms with their realised order of updates, and how much is to be done."""
    from ganbench.cli.output import table

    console.print(f"{sweep.name}: {sweep.question}", markup=False)
    arms = sorted(sweep.arms, key=lambda arm: arm.ratio)
    rows = [(sweep.label(arm), order_of(arm), rounds_of(arm), str(arm.budget), str(arm.expected)) for arm in arms]
    table(console, ["arm", "a round", "rounds", "budget", "expected"], rows)
    seeds = ", ".join(str(seed) for seed in sweep.seeds)
    console.print(
        f"{len(sweep.arms)} arms × {len(sweep.seeds)} seeds ({seeds}) = {len(sweep.arms) * len(sweep.seeds)} runs, "
        f"in random blocks by seed; sweep {sweep.sweep_id}",
        markup=False,
    )


def order_of(arm: RunSpec) -> str:
    """The realised order of a round's updates, long stretches counted: `G G D`, `G×12 D`."""
    stretches = [("G", arm.ratio.g), ("D", arm.ratio.d)]
    if arm.order == "d_first":
        stretches.reverse()
    return " ".join(f"{name}×{count}" if count > 8 else " ".join([name] * count) for name, count in stretches)


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
