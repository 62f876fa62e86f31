"""`ganbench sweep`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganbench.cli.options import experiment_fields, experiment_options, include_uncertified, tracking_uri

if TYPE_CHECKING:
    from rich.console import Console

    from ganbench.execute.local import LocalExecutor
    from ganbench.spec.sweep import SweepSpec
    from ganbench.sweep import Result
    from ganbench.track.store import Store
    from ganbench.track.tracker import Tracker

_MOST_LINES = 12


@click.command("sweep")
@experiment_options
@tracking_uri
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Runs side by side.")
@click.option(
    "--executor",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="Where runs are made.",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds a run may take.")
@click.option("--download", is_flag=True, help="Fetch a dataset's files where they are absent.")
@click.option("--retry", type=click.Choice(["failed", "all"]), help="Make again the runs that did not come out as "
              "expected (failed), or every run that did not end ok, controls included (all).")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Make every run again.")
@click.option("--calibrate", is_flag=True, help="Add an A/A copy of each reference arm: the noise floor.")
@click.option("--verify", is_flag=True, help="Certify the strategies first, and keep those that are not certified out "
              "of the table of cost.")  # fmt: skip
@include_uncertified
@click.option("--plan", "plan_only", is_flag=True, help="Show what would run, and stop.")
def command(
    tracking_uri: str,
    jobs: int,
    executor: str,  # noqa: ARG001 - there is one so far
    timeout: float | None,
    download: bool,
    retry: str | None,
    fresh: bool,
    calibrate: bool,
    verify: bool,
    include_uncertified: bool,
    plan_only: bool,
    **experiment: Any,
) -> None:
    """Run EXPERIMENT: a YAML file, or the name of a shipped one (default: quickstart).

    Runs that have a result already are not made again. Exit code: 0 everything came out as expected, 1 some run did
    not, 2 usage, 130 interrupted.
    """
    from ganbench.cli.output import console_for
    from ganbench.cli.plan import print_plan
    from ganbench.cli.prepare import sweep_of
    from ganbench.cli.watch import SweepDisplay
    from ganbench.execute.local import LocalExecutor
    from ganbench.execute.stop import Stop
    from ganbench.spec.sweep import SweepSpec
    from ganbench.sweep import run_sweep, settle
    from ganbench.track.certificates import tag_verdicts
    from ganbench.track.store import Store
    from ganbench.track.tracker import Tracker

    if retry and fresh:
        raise click.UsageError("--retry makes some runs again, --fresh all of them; give one")
    fields, where = experiment_fields(**experiment)
    if calibrate:
        fields["calibrate"] = True
    if not isinstance(fields.get("dataset"), dict) or "first_of" not in fields["dataset"]:
        SweepSpec.from_fields(fields, where)  # a wrong file is told at once, before torch is loaded
    console = console_for()
    stop = Stop()
    workers = LocalExecutor(jobs, stop)
    workers.warm_up()
    with stop.on_signals():
        sweep, lines = sweep_of(fields, where, workers)
        if plan_only:
            print_plan(console, sweep)
            return
        store = Store(tracking_uri)
        sweep, found = settle(sweep, workers, download)
        for line in [*lines, *found]:
            console.print(line, markup=False)
        console.print(
            f"sweep {sweep.sweep_id} '{sweep.name}': {len(sweep.arms)} arms × {len(sweep.seeds)} seeds",
            markup=False,
        )
        verdicts = _verdicts(console, sweep, workers, store) if verify else {}
        tracker = Tracker(store, sweep)
        _ship_leftovers(console, tracker)
        mode = "fresh" if fresh else retry or "none"
        with SweepDisplay(console) as display:
            result = run_sweep(sweep, workers, tracker, stop, display, retry=mode, timeout=timeout)  # type: ignore[arg-type]
    if verdicts:
        result = replace(result, runs=tag_verdicts(store, result.runs, verdicts))
    _print_result(console, result, tracker, store, include_uncertified)
    raise click.exceptions.Exit(result.exit_code)


def _ship_leftovers(console: Console, tracker: Tracker) -> None:
    shipped, problems = tracker.ship_leftovers()
    if shipped:
        console.print(f"{shipped} runs that the store had missed were written to it")
    for problem in problems:
        console.print(f"log: {problem}", markup=False)


def _verdicts(console: Console, sweep: SweepSpec, workers: LocalExecutor, store: Store) -> dict[str, str]:
    """Each arm's certificate in words, after the table of them."""
    from ganbench.cli.verify import print_certificates, verify_sweep
    from ganbench.verify import verdicts_of

    certificates, _ = verify_sweep(console, sweep, workers, store)
    print_certificates(console, sweep, list(certificates.values()))
    console.print()
    return verdicts_of(sweep, certificates)


def _print_result(console: Console, result: Result, tracker: Tracker, store: Store, include_uncertified: bool) -> None:
    from ganbench.cli.output import frame_rows, print_cost, print_summary, quoted, ui_link
    from ganbench.report.frame import frame_of
    from ganbench.track.store import DEFAULT_URI

    if result.runs:
        console.print()
        frame = frame_of(frame_rows(result.runs.values(), result.sweep.name, include_uncertified))
        print_summary(console, frame)
        print_cost(console, frame)
    console.print()
    _print_unexpected(console, result)
    if result.missed:
        why = next(iter(result.missed.values()))
        console.print(f"{len(result.missed)} runs are in {Path('.ganbench')} but not in the store ({why}); "
                      "the same command ships them", markup=False)  # fmt: skip
    if result.interrupted:
        console.print("interrupted; the same command goes on with what is left")
    done = len([run for run in result.runs.values() if run.as_expected])
    console.print(f"{done} of {len(result.sweep.runs())} runs came out as expected; "
                  f"{result.made} made now, {result.reused} taken from the store")  # fmt: skip
    place = "" if store.uri == DEFAULT_URI else f" --tracking-uri {quoted(store.uri)}"
    console.print(
        f"see them:     ganbench ui{place}    then {ui_link(tracker.experiment_id)}",
        markup=False,
        soft_wrap=True,
    )
    console.print(f"make tables:  ganbench report {quoted(result.sweep.name)}{place}", markup=False, soft_wrap=True)


def _print_unexpected(console: Console, result: Result) -> None:
    """Each arm with runs that did not come out as expected, with what its error means."""
    from ganbench.errors import ErrorKind
    from ganbench.record.advice import BY_ITSELF, explain
    from ganbench.track import spelling

    by_arm: dict[str, list[Any]] = {}
    for run in result.unexpected:
        by_arm.setdefault(run.arm_key, []).append(run)
    arms = {arm.arm_key: arm for arm in result.sweep.arms}
    labels = {key: result.sweep.label(arm) for key, arm in arms.items()}
    for n, (arm, runs) in enumerate(by_arm.items()):
        if n == _MOST_LINES:
            console.print(f"… and {len(by_arm) - n} more arms; see the table above")
            break
        first = runs[0]
        seeds = ", ".join(str(run.seed) for run in sorted(runs, key=lambda run: run.seed))
        why = first.tags.get(spelling.ERROR) or first.reason
        outcome = first.outcome or "unfinished"
        console.print(f"not as expected: {labels[arm]} (seed {seeds}): {outcome}: {why}", markup=False)
        kind = first.tags.get(spelling.ERROR_KIND)
        if kind and first.outcome in BY_ITSELF:
            advice = explain(ErrorKind(kind), arms[arm])
            console.print(f"  {advice.happened}\n  {advice.remedy}", markup=False)
