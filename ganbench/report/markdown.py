"""A first report: Markdown for reading, CSV for everything else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ganbench.record.metrics import metric
from ganbench.report.cost import FIGURES, INTERVAL, compare, cost_table, split_by_host, usable
from ganbench.report.frame import varying
from ganbench.report.memory import DEFINITION
from ganbench.report.summary import quality_title, summary_of


def write_report(
    frame: pd.DataFrame, memory: pd.DataFrame, name: str, question: str, folder: Path, formats: list[str]
) -> list[Path]:
    """Write `report.md`, and `arms.csv`, `memory.csv` and `runs.csv`, as asked; the paths written.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    summary = summary_of(frame)
    written: list[Path] = []
    if "md" in formats:
        path = folder / "report.md"
        path.write_text(markdown(frame, summary, memory, name, question), encoding="utf-8")
        written.append(path)
    if "csv" in formats:
        for table, file in ((summary, "arms.csv"), (memory, "memory.csv"), (frame, "runs.csv")):
            table.to_csv(folder / file, index=False)
            written.append(folder / file)
    return written


def markdown(frame: pd.DataFrame, summary: pd.DataFrame, memory: pd.DataFrame, name: str, question: str) -> str:
    """The whole report as Markdown."""
    runs = frame[["ratio", "strategy", *varying(frame), "seed", "outcome", "as_expected", "reason"]].astype(str)
    floors = [c for c in frame.columns if c.endswith("_floor")]
    lines = [
        f"# {escaped(name)}",
        "",
        escaped(question),
        "",
        f"{len(frame)} runs in {frame['arm_key'].nunique()} arms; seeds "
        f"{', '.join(str(s) for s in sorted(frame['seed'].unique()))}; budget "
        f"{', '.join(sorted(frame['budget'].dropna().unique()))} a run.",
        "",
        "## Arms",
        "",
        f"Quality: {quality_title(frame)}, mean ± standard deviation over seeds that ended ok; in brackets what real "
        "data gets against disjoint real data at the same number of samples. Times are medians over steady rounds, "
        "then over seeds. Live MiB: the peak of live tensors in a round.",
        "",
        _table(summary),
        *_costs(frame),
        *(["", "## Memory", "", f"{DEFINITION}.", "", _table(memory)] if len(memory) else []),
        "",
        "## Runs",
        "",
        _table(runs),
    ]
    if floors:
        values = {c.removeprefix("quality/"): frame[c].dropna() for c in floors}
        lines += ["", "Floors: " + ", ".join(f"{c} {v.iloc[0]:.4g}" for c, v in values.items() if len(v))]
    return "\n".join(lines) + "\n"


def _costs(frame: pd.DataFrame) -> list[str]:
    """The tables of cost, one for each host and figure, with what must be known to read them."""
    lines: list[str] = []
    parts, remarks = split_by_host(frame)
    for part in parts:
        remarks += usable(part)[1]
        for figure in FIGURES:
            comparisons = compare(part, figure)
            if comparisons:
                lines += ["", f"### {metric(figure).title}", "", _table(cost_table(comparisons))]
    if lines:
        lines = ["", "## Cost", "", f"{INTERVAL[0].upper()}{INTERVAL[1:]}.", *lines]
    return [*lines, *(f"\n- {escaped(remark)}" for remark in dict.fromkeys(remarks))]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    for mark in "\\`*_{}[]<>#|":
        text = text.replace(mark, f"\\{mark}")
    return text


def _table(table: pd.DataFrame) -> str:
    plain = table.astype(str).map(escaped)
    return str(plain.to_markdown(index=False, disable_numparse=True))
