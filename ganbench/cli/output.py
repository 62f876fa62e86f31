"""Tables and links on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

    from ganbench.record.memory import LiveMemory
    from ganbench.track.reader import Reader, StoredRun, StoredSweep

_PLAIN_WIDTH = 200


def console_for(stderr: bool = False) -> Console:
    """A console that wraps at the terminal's width, and hardly ever where there is none."""
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_PLAIN_WIDTH)


def table(console: Console, headers: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table; cells are plain text, never markup."""
    grid = Table(title=Text(title) if title else None, title_justify="left", box=None, pad_edge=False)
    for header in headers:
        grid.add_column(Text(header), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def print_summary(console: Console, frame: pd.DataFrame) -> None:
    """The table of arms with what its columns hold."""
    from ganbench.report.summary import quality_title, summary_of

    summary = summary_of(frame)
    table(console, [str(c) for c in summary.columns], summary.astype(str).itertuples(index=False))
    console.print(
        f"quality: {quality_title(frame)}, mean ± std over seeds; (real …): disjoint real data at the same N",
        markup=False,
    )


def print_cost(console: Console, frame: pd.DataFrame) -> None:
    """Each arm's time a round against the reference of its blocks, where there is anything to compare."""
    from ganbench.report.cost import INTERVAL, compare, cost_table, split_by_host, usable

    parts, lines = split_by_host(frame)
    for part in parts:
        lines += usable(part)[1]
        comparisons = compare(part)
        if comparisons:
            costs = cost_table(comparisons)
            console.print()
            table(console, [str(c) for c in costs.columns], costs.astype(str).itertuples(index=False))
            console.print(INTERVAL, markup=False)
    for line in dict.fromkeys(lines):
        console.print(line, markup=False)


def frame_rows(
    runs: Iterable[StoredRun], experiment: str, include_uncertified: bool = False
) -> list[dict[str, object]]:
    """Stored runs as rows of the report's frame. Those whose strategy was not certified are unfit for tables of cost,
    unless they are to be included."""
    from ganbench.report.frame import HOST_FACTS
    from ganbench.track import spelling

    rows: list[dict[str, object]] = []
    for run in runs:
        row: dict[str, object] = {
            "experiment": experiment,
            "sweep": run.tags.get(spelling.SWEEP),
            "arm_key": run.arm_key,
            "run_key": run.run_key,
            "run_id": run.run_id,
            **run.params,
            "outcome": str(run.outcome) if run.outcome else None,
            "error_kind": run.tags.get(spelling.ERROR_KIND),
            "expected": run.tags.get(spelling.EXPECTED),
            "as_expected": run.as_expected,
            "reason": run.reason,
            "weights": run.tags.get(spelling.WEIGHTS),
            "primary": run.tags.get(spelling.PRIMARY),
            "pairing": run.tags.get(spelling.PAIRING),
            "calibration": run.tags.get(spelling.CALIBRATION) == "true",
            "warnings": run.tags.get(spelling.WARNINGS),
            "unfit_for_cost": run.tags.get(spelling.UNFIT) or (None if include_uncertified else uncertified(run)),
            **{key: value for key, value in run.tags.items() if key in HOST_FACTS},
            **run.metrics,
            **{f"{key}_floor": value for key, value in run.floor.items()},
        }
        rows.append(row)
    return rows


def uncertified(run: StoredRun) -> str | None:
    """Why a run's strategy is not certified; None where it is, or where nobody looked."""
    from ganbench.spec.strategy import CERTIFIED
    from ganbench.track import spelling

    verdict = run.tags.get(spelling.VERDICT)
    return None if verdict is None or verdict in CERTIFIED else f"not certified: {verdict}"


def memory_rows(
    reader: Reader, runs: Iterable[StoredRun], labels: Mapping[str, str]
) -> list[tuple[str, LiveMemory, dict[str, float]]]:
    """Each arm's live memory from the record of one of its seeds, it is equal for all of them; and the median over
    its seeds of the share of each phase's time that discarded gradients take."""
    from statistics import median

    from ganbench.record.outcome import Outcome

    by_arm: dict[str, list[StoredRun]] = {}
    for run in runs:
        if run.outcome is Outcome.OK:
            by_arm.setdefault(run.arm_key, []).append(run)
    found = []
    for arm, label in sorted(labels.items(), key=lambda item: item[1]):
        seeds = by_arm.get(arm, [])
        memory = reader.record(seeds[0].run_id).memory if seeds else None
        if memory is None:
            continue
        shares = {}
        for phase in ("g", "d"):
            values = [run.metrics[key] for run in seeds if (key := f"time/discarded_{phase}_share") in run.metrics]
            if values:
                shares[phase] = median(values)
        found.append((label, memory, shares))
    return found


def frame_of_sweeps(
    sweeps: Sequence[StoredSweep], runs: Iterable[StoredRun], include_uncertified: bool = False
) -> pd.DataFrame:
    """The report's frame for the runs of some sweeps of one experiment."""
    from ganbench.report.frame import frame_of

    return frame_of(frame_rows(runs, sweeps[0].experiment, include_uncertified))


def ui_link(experiment_id: str, chart: bool = False, base: str = "http://127.0.0.1:5000") -> str:
    """The address of an experiment in MLflow's UI; without the workflow it would open another product's page."""
    mode = "&compareRunsMode=CHART" if chart else ""
    return f"{base}/#/experiments/{experiment_id}/runs?workflowType=machine_learning{mode}"


def quoted(text: str) -> str:
    """A name as an argument for a POSIX shell."""
    import shlex

    return shlex.quote(text)
