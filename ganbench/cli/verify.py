"""`ganbench verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganbench.cli.options import experiment_fields, experiment_options, tracking_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ganbench.execute.local import LocalExecutor
    from ganbench.record.certificate import Certificate
    from ganbench.spec.sweep import SweepSpec
    from ganbench.track.store import Store

_MIB = 2**20


@click.command("verify")
@experiment_options
@tracking_uri
@click.option("--download", is_flag=True, help="Fetch a dataset's files where they are absent.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for verify.json; default reports/NAME.",
)
@click.option("--rounds", type=click.IntRange(1, 10_000), default=3, show_default=True, help="Rounds looked at.")
def command(tracking_uri: str, download: bool, output: Path | None, rounds: int, **experiment: Any) -> None:
    """Certify which strategies of EXPERIMENT train on the gradients that they claim.

    Before each optimizer step of a few real rounds, every gradient is held against an independent recomputation; then
    the trajectory against that of detach. Exit code: 0 every verdict was the expected one, 1 some was not, 2 usage.
    """
    from ganbench.cli.output import console_for, quoted, ui_link
    from ganbench.cli.prepare import sweep_of
    from ganbench.errors import UsageError
    from ganbench.execute.local import LocalExecutor
    from ganbench.execute.stop import Stop
    from ganbench.sweep import settle
    from ganbench.track.certificates import FILE, certificate_json
    from ganbench.track.store import DEFAULT_URI, Store

    fields, where = experiment_fields(**experiment)
    console, stop = console_for(), Stop()
    executor = LocalExecutor(stop=stop)
    executor.warm_up()
    with stop.on_signals():
        sweep, lines = sweep_of(fields, where, executor)
        sweep, found = settle(sweep, executor, download)
        for line in [*lines, *found]:
            console.print(line, markup=False)
        store = Store(tracking_uri)
        certificates, experiment_id = verify_sweep(console, sweep, executor, store, rounds)
    print_certificates(console, sweep, list(certificates.values()))
    folder = output or Path("reports") / sweep.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(certificate_json(certificates.values()), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to '{folder}': {error.strerror}; choose another folder with -o") from None
    place = "" if store.uri == DEFAULT_URI else f" --tracking-uri {quoted(store.uri)}"
    console.print(str(folder / FILE), markup=False, soft_wrap=True)
    console.print(f"see them: ganbench ui{place}    then {ui_link(experiment_id)}", markup=False, soft_wrap=True)
    if not all(certificate.as_expected for certificate in certificates.values()):
        raise click.exceptions.Exit(1)


def verify_sweep(
    console: Console, sweep: SweepSpec, executor: LocalExecutor, store: Store, rounds: int = 3
) -> tuple[dict[str, Certificate], str]:
    """Certify a settled sweep's arms, with progress, and write the certificates to the store; the certificates by
    their key, and the experiment's id."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from ganbench.track import spelling
    from ganbench.track.certificates import write_certificates
    from ganbench.track.tracker import experiment_note
    from ganbench.verify import ADDED, certify_arms, to_certify

    arms, added = to_certify(sweep)
    if added:
        console.print(f"ratio {ADDED} is certified too: several bugs cannot be seen with one D update a round")
    with Progress(TextColumn("certifying"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"),
                  console=console, transient=True) as progress:  # fmt: skip
        bar = progress.add_task("", total=len(arms))
        certificates = certify_arms(
            arms, executor, lambda made: progress.update(bar, advance=1, description=sweep.label(made.spec)), rounds
        )
    key, text = spelling.sweep_tag(sweep)
    experiment_id = store.ensure_experiment(sweep.name, {key: text, spelling.NOTE: experiment_note(sweep)})
    labelled = [(name, sweep.label(one.spec), one) for name, one in certificates.items()]
    write_certificates(store, experiment_id, sweep.sweep_id, labelled)
    return certificates, experiment_id


def print_certificates(console: Console, sweep: SweepSpec, certificates: Sequence[Certificate]) -> None:
    """The table, and below it the reasons of all that was not expected."""
    from ganbench.cli.output import table

    headers = ["arm", "verdict", "as expected", "leftover G", "leftover D", "trajectory", "thrown away", "graph kept"]
    table(console, headers, [[sweep.label(one.spec), *_cells(one)] for one in certificates])
    first = next((one for one in certificates if one.truth), None)
    if first is not None:
        console.print(
            f"leftover: length of what does not belong to the gradients of a step over the declared gradient's, the "
            f"worst of {first.rounds} rounds, recomputed in {first.reference}. trajectory: largest difference from "
            "detach. thrown away: gradients computed and discarded in a round, and their share of the phase's time",
            markup=False,
        )
    for one in certificates:
        if not one.as_expected:
            error = f" ({one.error})" if one.error else ""
            text = one.reason if one.verdict is None else f"{one.text}, expected {one.expected}: {one.reason}{error}"
            console.print(f"not as expected: {sweep.label(one.spec)}: {text}", markup=False)
    good = sum(one.as_expected for one in certificates)
    console.print(f"{good} of {len(certificates)} verdicts are the expected ones")


def _cells(one: Certificate) -> list[str]:
    from ganbench.record.memory import share_text

    leftovers = []
    for name in ("g", "d"):
        truth = one.truth.get(name)
        if truth is None:
            leftovers.append("-")
        else:
            steps = f" ({truth.untrue} of {truth.updates} steps)" if truth.untrue else ""
            leftovers.append(f"{truth.worst_share:.2g}{steps}")
    trajectory = "-"
    if one.trajectory_difference is not None:
        trajectory = "bit-equal" if one.trajectory_difference == 0 else f"{one.trajectory_difference:.2g}"
    thrown = "-"
    if one.discarded_gradient_bytes is not None:
        shares = one.discarded_time_share or {}
        parts = [
            f"{size / _MIB:.2f} MiB in {phase.upper()} ({share_text(shares.get(phase, 0.0))})"
            for phase, size in one.discarded_gradient_bytes.items()
            if size
        ]
        thrown = ", ".join(parts) or "none"
    kept = "-" if one.retained_graph_bytes is None else f"{one.retained_graph_bytes / _MIB:.2f} MiB"
    mark = "yes" if one.as_expected else f"NO: {one.expected}"
    return [one.text, mark, *leftovers, trajectory, thrown, kept]
