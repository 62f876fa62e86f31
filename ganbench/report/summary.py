"""One row an arm: outcome, quality with its floor, cost. The same cells for the terminal and for Markdown."""

from __future__ import annotations

import pandas as pd

from ganbench.record.metrics import metric
from ganbench.report.frame import varying
from ganbench.spec.strategy import STRATEGIES

COST = {
    "time/round_ms": "ms/round",
    "throughput/updates_per_second": "updates/s",
    "memory/live_peak_mib": "live MiB",
    "memory/rss_peak_mib": "RSS MiB",
}
CUDA_COST = {"memory/cuda_allocated_peak_mib": "CUDA MiB"}


def summary_of(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of text, a row an arm, ordered by ratio and by the table of strategies.

    Quality is the mean over the seeds that ended ok ± their standard deviation; cost figures are medians over them.
    """
    rank = {name: n for n, name in enumerate(STRATEGIES)}
    extra = varying(frame)
    cost = COST | {key: title for key, title in CUDA_COST.items() if key in frame.columns}
    rows = []
    order = frame.assign(_rank=frame["strategy"].map(rank).fillna(len(rank)))
    groups = order.groupby(["g_steps", "d_steps", *extra, "_rank", "calibration", "arm_key"], sort=True, dropna=False)
    for _, arm in groups:
        first = arm.iloc[0]
        ok = arm[arm["outcome"] == "ok"]
        row = {
            "ratio": first["ratio"],
            "strategy": f"{first['strategy']} (A/A)" if first["calibration"] else first["strategy"],
            **{name: str(first[name]) for name in extra},
        }
        row["outcome"] = _outcome(arm)
        row["as expected"] = _expected(arm)
        row["quality"] = _quality(ok)
        for key, title in cost.items():
            values = ok[key].dropna() if key in ok.columns else ok.iloc[:0]["seed"]
            row[title] = metric(key).text(float(values.median())) if len(values) else "-"
        rows.append(row)
    return pd.DataFrame(rows)


def _outcome(arm: pd.DataFrame) -> str:
    counts = arm["outcome"].fillna("unfinished").value_counts()
    kinds = arm["error_kind"].dropna().unique()
    parts = []
    for outcome, count in counts.items():
        kind = f" {kinds[0]}" if outcome == "raised" and len(kinds) == 1 else ""
        parts.append(f"{outcome}{kind} {count}/{len(arm)}")
    return ", ".join(parts)


def _expected(arm: pd.DataFrame) -> str:
    asked = str(arm["expected"].iloc[0])
    met = int(arm["as_expected"].fillna(False).sum())
    return f"yes: {asked}" if met == len(arm) else f"NO ({met}/{len(arm)}): {asked}"


def _quality(ok: pd.DataFrame) -> str:
    keys = ok["primary"].dropna().unique()
    if len(keys) != 1 or keys[0] not in ok.columns:
        return "-"
    key = str(keys[0])
    values = ok[key].dropna()
    if not len(values):
        return "-"
    text = metric(key).text
    spread = f" ± {text(float(values.std()))}" if len(values) > 1 else ""
    floor = ok[f"{key}_floor"].dropna() if f"{key}_floor" in ok.columns else values.iloc[:0]
    return f"{text(float(values.mean()))}{spread}" + (f" (real {text(float(floor.iloc[0]))})" if len(floor) else "")


def quality_title(frame: pd.DataFrame) -> str:
    """What the quality column holds, in words."""
    keys = [str(key) for key in frame["primary"].dropna().unique()]
    names = [f"{metric(key).title} ({'less' if metric(key).direction < 0 else 'more'} is better)" for key in keys]
    return "; ".join(names) or "not judged"
