"""What each arm costs against the reference of its block, with the machine's noise beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ganbench.record.metrics import metric
from ganbench.report.frame import HOST_FACTS, varying
from ganbench.report.significance import PairedTest, paired_tests
from ganbench.report.statistics import LEAST_BLOCKS, Floor, Ratio, Scale, noise_floor, paired_ratio, verdict
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import REFERENCE, STRATEGIES

FIGURES = ("time/round_ms", "time/g_phase_ms", "time/d_phase_ms")
INTERVAL = (
    f"ratios to {REFERENCE} of the same ratio, settings and seed: geometric mean over blocks (block = seed) with a "
    "95 % paired bootstrap interval; floor: interval of an A/A copy (--calibrate); p: exact sign-flip test with Holm's "
    "correction"
)


@dataclass(frozen=True)
class Comparison:
    """One arm against the reference with the same ratio, settings, seeds and host."""

    arm_key: str
    ratio: str
    strategy: str
    settings: dict[str, str]
    is_copy: bool
    figure: str
    cost: Ratio
    floor: Floor | None
    verdict: str
    test: PairedTest | None = None


def split_by_host(frame: pd.DataFrame) -> tuple[list[pd.DataFrame], list[str]]:
    """The frame in parts whose host facts agree, and lines that say which facts differ between them.

    Times from different hosts are never pooled.
    """
    # A GPU's facts are recorded by CUDA runs alone: a sweep over both devices is still one host.
    # Runs that never came to training have no facts, and no times to compare either.
    by_device = [group for _, group in frame[frame["outcome"] == "ok"].groupby("device", dropna=False)]
    differing = [fact for fact in HOST_FACTS if any(group[fact].nunique(dropna=False) > 1 for group in by_device)]
    if not differing:
        return [frame], []
    lines = [
        f"runs differ in {fact} ({', '.join(sorted(frame[fact].fillna('-').astype(str).unique()))}): "
        "their times are compared apart"
        for fact in differing
    ]
    return [part for _, part in frame.groupby(differing, dropna=False)], lines


def usable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The runs whose times may be compared, and lines about those left out or to be read with care."""
    lines = []
    ok = frame[frame["outcome"] == "ok"]
    unfit = ok["unfit_for_cost"].dropna()
    if len(unfit):
        lines.append(f"{len(unfit)} runs are left out of the cost table: {'; '.join(sorted(unfit.unique()))}")
    kept = ok[ok["unfit_for_cost"].isna()]
    warned = kept["warnings"].dropna().astype(str)
    for text, what in (
        ("unstable", "were timed too briefly for a steady median"),
        ("disturbed", f"were disturbed: their pairs are left out of a ratio where {LEAST_BLOCKS} others remain"),
    ):
        count = int(warned.str.contains(text).sum())
        if count:
            lines.append(f"{count} of {len(kept)} runs {what}; see their warnings")
    return kept, lines


def _quiet(blocks: list[str], *sides: pd.DataFrame) -> list[str]:
    """The blocks in which no side was disturbed by other load; all of them where too few are quiet."""
    loud = {
        block for side in sides for block in side[side["warnings"].astype(str).str.contains("disturbed")]["pairing"]
    }
    quiet = [block for block in blocks if block not in loud]
    return quiet if len(quiet) >= LEAST_BLOCKS else blocks


def compare(frame: pd.DataFrame, figure: str = "time/round_ms") -> list[Comparison]:
    """Every arm against the reference, paired by block, within one host; ordered by ratio and strategy. Pairs
    with a run that was disturbed by other load are left out where enough others remain.

    The interval is a paired bootstrap over blocks, its random numbers from the figure's and the arm's names: the same
    runs give the same table. The noise floor is that of the A/A copy with the same ratio and settings.
    """
    kept, _ = usable(frame)
    if figure not in kept.columns:
        return []  # nothing was timed
    extra = [name for name in varying(frame) if name != "device"]
    references = kept[(kept["strategy"] == REFERENCE) & ~kept["calibration"]]
    reference = references.set_index("pairing")[figure].dropna()
    reference = reference[~reference.index.duplicated()]
    rows: list[tuple[pd.Series, Ratio, list[float], list[float]]] = []
    for _, arm in kept.groupby("arm_key", sort=True):
        first = arm.iloc[0]
        if first["strategy"] == REFERENCE and not first["calibration"]:
            continue
        pairs = arm.set_index("pairing")[figure].dropna()
        shared = _quiet(sorted(block for block in pairs.index if block in reference.index), arm, references)
        if not shared:
            continue
        values, against = [float(pairs[b]) for b in shared], [float(reference[b]) for b in shared]
        rng = np.random.default_rng(derive_seed("cost table", figure, str(first["arm_key"])))
        rows.append((first, paired_ratio(values, against, rng), values, against))
    floors = _floors(rows, extra)
    real = [(values, against) for first, _, values, against in rows if not first["calibration"]]
    tests = iter(paired_tests(real))
    found = []
    for first, cost, _, _ in rows:
        floor = floors.get(_place(first, extra))
        found.append(
            Comparison(
                arm_key=str(first["arm_key"]),
                ratio=str(first["ratio"]),
                strategy=str(first["strategy"]),
                settings={name: str(first[name]) for name in extra},
                is_copy=bool(first["calibration"]),
                figure=figure,
                cost=cost,
                floor=floor,
                verdict="noise floor" if first["calibration"] else verdict(cost, floor, _scale(figure)),
                test=None if first["calibration"] else next(tests),
            )
        )
    rank = {name: n for n, name in enumerate(STRATEGIES)}
    return sorted(found, key=lambda c: (_sides(c.ratio), sorted(c.settings.items()), rank.get(c.strategy, 99)))


def _floors(rows: list[tuple[pd.Series, Ratio, list[float], list[float]]], extra: list[str]) -> dict[str, Floor]:
    copies: dict[str, list[Ratio]] = {}
    for first, cost, _, _ in rows:
        if first["calibration"]:
            copies.setdefault(_place(first, extra), []).append(cost)
    floors = {place: noise_floor(found) for place, found in copies.items()}
    return {place: floor for place, floor in floors.items() if floor is not None}


def _place(first: pd.Series, extra: list[str]) -> str:
    return "|".join(str(first[name]) for name in ("ratio", "device", *extra))


def _sides(ratio: str) -> tuple[int, ...]:
    return tuple(int(side) for side in ratio.split(":"))


def _scale(figure: str) -> Scale:
    if figure.startswith("time/"):
        return Scale.TIME
    return Scale.SPEED if figure.startswith("throughput/") else Scale.AMOUNT


def cost_table(comparisons: list[Comparison]) -> pd.DataFrame:
    """The comparisons as a table of text: ratio to the reference with its interval, the floor, and what can be said."""
    rows = []
    for c in comparisons:
        interval = f" [{c.cost.low:.3f}, {c.cost.high:.3f}]" if c.cost.low is not None else ""
        row = {"ratio": c.ratio, "strategy": c.strategy + (" (A/A)" if c.is_copy else ""), **c.settings}
        row[f"{metric(c.figure).title} / {REFERENCE}"] = f"{c.cost.estimate:.3f}{interval}"
        row["floor"] = f"×{c.floor.factor:.3f}" if c.floor is not None else "not measured"
        row["reading"] = c.verdict
        row["blocks"] = str(c.cost.n)
        row["p (Holm)"] = _p_text(c.test)
        rows.append(row)
    return pd.DataFrame(rows)


def _p_text(test: PairedTest | None) -> str:
    if test is None:
        return "-"
    return f"needs {test.needed} blocks" if test.adjusted is None else f"{test.adjusted:.3g}"
