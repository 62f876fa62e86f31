"""`ganbench check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganbench.cli.options import experiment_fields, experiment_options

if TYPE_CHECKING:
    from rich.console import Console

    from ganbench.execute.check import Checked
    from ganbench.record.finding import Finding, Severity
    from ganbench.record.loop import LoopSeen
    from ganbench.spec.run import RunSpec

_STYLES: Mapping[str, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


@click.command("check")
@experiment_options
@click.option("--download", is_flag=True, help="Fetch a dataset's files where they are absent.")
@click.option("--loop", metavar="FILE.py:STEP", help="Observe this training step of yours instead, called as "
              "step(G, D, opt_g, opt_d, real, …) with what its parameters' names ask for.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 1000), default=6, show_default=True, help="Calls of --loop's step.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the findings there.")
def command(download: bool, loop: str | None, rounds: int, json_file: Path | None, **experiment: Any) -> None:
    """Look the networks, data and loss of EXPERIMENT over before any run; or, with --loop, a training step of yours.

    Exit code: 0 all of it can run, whatever else was found; 1 something cannot; 2 usage, or a file that cannot be
    loaded.
    """
    from ganbench.cli.output import console_for
    from ganbench.cli.prepare import sweep_of
    from ganbench.cli.sources import settled
    from ganbench.execute.check import check
    from ganbench.execute.local import LocalExecutor
    from ganbench.execute.loop import observe_loop
    from ganbench.execute.stop import Stop

    fields, where = experiment_fields(**experiment)
    console, stop = console_for(), Stop()
    executor = LocalExecutor(stop=stop)
    executor.warm_up()
    with stop.on_signals():
        sweep, lines = sweep_of(fields, where, executor)
        if loop is not None:
            seen = observe_loop(executor, sweep.arms[0], settled(loop, Path(where).parent, "--loop"), rounds, download)
            print_loop(console, seen)
            if json_file is not None:
                _write(json_file, seen.plain())
            raise click.exceptions.Exit(1 if any(one.severity == "error" for one in seen.findings) else 0)
        checked: dict[str, Checked] = {}
        for label, arm in combinations(sweep.arms).items():
            checked[label] = check(executor, arm, download)
    print_checked(console, checked, lines)
    if json_file is not None:
        combined = [{"label": label, **one.looked.plain()} for label, one in checked.items()]
        _write(json_file, {"experiment": sweep.name, "combinations": combined})
    if not all(one.looked.can_run for one in checked.values()):
        raise click.exceptions.Exit(1)


def combinations(arms: Sequence[RunSpec]) -> dict[str, RunSpec]:
    """The arms that differ in what checks depend on, one for each such combination, by what tells them apart."""
    from ganbench.execute.check import DEPENDS_ON
    from ganbench.spec.value import canonical_json

    first: dict[str, RunSpec] = {}
    for arm in arms:
        first.setdefault(canonical_json({part: arm.content()[part] for part in DEPENDS_ON}), arm)
    texts = [{part: _text(arm, part) for part in DEPENDS_ON} for arm in first.values()]
    shown = [
        part
        for part in DEPENDS_ON
        if part in ("model", "dataset", "loss", "batch_size") or len({text[part] for text in texts}) > 1
    ]
    labels: dict[str, RunSpec] = {}
    for text, arm in zip(texts, first.values(), strict=True):
        label = ", ".join(text[part] for part in shown)
        labels[label if label not in labels else f"{label} ({len(labels) + 1})"] = arm
    return labels


def _text(arm: RunSpec, part: str) -> str:
    from ganbench.spec.model import UserModelSpec
    from ganbench.spec.value import Value, canonical_json

    value = getattr(arm, part)
    if part == "batch_size":
        return f"batch {value}"
    if isinstance(value, UserModelSpec):
        arguments = [canonical_json(given) for given in (value.generator_args, value.discriminator_args) if given]
        return " ".join([value.name, *arguments])
    if isinstance(value, Value):
        set_options = value.model_dump(
            mode="json", exclude_unset=True, exclude={"name", "place", "root", "content", "sources"}
        )
        options = " ".join(f"{key}={canonical_json(given)}" for key, given in set_options.items())
        return " ".join(filter(None, [getattr(value, "name", part), options]))
    return str(value)


def print_checked(console: Console, checked: Mapping[str, Checked], lines: Sequence[str]) -> None:
    """Every finding once, by severity, with the combinations that it holds for where that is not all of them."""
    from ganbench.record.finding import SEVERITIES

    said = dict.fromkeys([*lines, *(line for one in checked.values() for line in one.lines)])
    for line in said:
        console.print(line, markup=False)
    # What was seen differs in its figures between combinations; the first one's are shown.
    first: dict[tuple[str, str], Finding] = {}
    holds: dict[Finding, list[str]] = {}
    for label, one in checked.items():
        for finding in one.looked.findings:
            holds.setdefault(first.setdefault((finding.code, finding.what), finding), []).append(label)
    for severity in SEVERITIES:
        for finding, labels in holds.items():
            if finding.severity == severity:
                _print_finding(console, finding, labels if len(labels) < len(checked) else [])
    made = sum(one.looked.made for one in checked.values())
    console.print(f"looked at: {'; '.join(checked)}", markup=False)
    for label, one in checked.items():
        if one.looked.left_out:
            left = f"{len(one.looked.left_out)} checks were left out until the errors above are mended"
            console.print(f"{left} ({label})" if len(checked) > 1 else left, markup=False)
    if holds:
        counts = ", ".join(_count(severity, holds) for severity in SEVERITIES if _count(severity, holds))
        console.print(f"{counts}; {made} checks made")
    else:
        console.print(f"nothing found; {made} checks made")


def _print_finding(console: Console, finding: Finding, labels: Sequence[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text.assemble((finding.severity, _STYLES[finding.severity]), f" {finding.code}: {finding.what}"))
    for name, text in (("seen", finding.evidence), ("do", finding.advice), ("in", "; ".join(labels))):
        if text:
            console.print(Padding(Text.assemble((f"{name}: ", "dim"), text), (0, 0, 0, 2), expand=False))
    console.print()


def _count(severity: Severity, findings: Mapping[Finding, object]) -> str:
    count = sum(finding.severity == severity for finding in findings)
    return f"{count} {severity}{'s' if count > 1 else ''}" if count else ""


def print_loop(console: Console, seen: LoopSeen) -> None:
    """What a step did, and what was found in it."""
    for line in seen.told():
        console.print(line, markup=False)
    console.print()
    for finding in seen.findings:
        _print_finding(console, finding, [])
    if not seen.findings:
        console.print(f"nothing found in {len(seen.rounds)} calls")


def _write(file: Path, plain: Mapping[str, object]) -> None:
    import json

    from ganbench import __version__
    from ganbench.errors import UsageError

    try:
        text = json.dumps({"ganbench": __version__, **plain}, indent=2, ensure_ascii=False)
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--json: cannot write '{file}': {error.strerror}") from None
