"""One tidy frame of runs, with declared columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ganbench.record.metrics import FINALS

# What identifies and describes a run, in the order of the frame; the metrics' columns come after.
IDENTITY = ("experiment", "sweep", "arm_key", "run_key", "run_id", "seed")
RESULT = (
    "outcome", "error_kind", "expected", "as_expected", "reason", "weights", "primary", "pairing", "calibration",
    "warnings", "unfit_for_cost",
)  # fmt: skip
# The facts that must agree before times are compared.
HOST_FACTS = ("host.cpu", "host.cores", "host.threads", "host.gpu", "host.driver", "host.torch", "host.cuda", "host.os")
PARAMS = (
    "ratio", "g_steps", "d_steps", "strategy", "order", "real_batches", "device", "model", "dataset", "loss",
    "batch_size", "latent_dim", "optimizer", "g_lr", "d_lr", "budget", "precision", "compile", "threads",
)  # fmt: skip
_WHOLE = ("g_steps", "d_steps", "batch_size", "latent_dim", "threads", "seed")
_NUMBERS = ("g_lr", "d_lr")


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a run, ordered by ratio, strategy and seed; metrics as float columns, absent values NaN.

    A floor of a quality metric stands in the column of its name with `_floor`.
    """
    frame = pd.DataFrame(list(rows))
    head = [*IDENTITY, *PARAMS, *RESULT, *HOST_FACTS]
    metrics = sorted({c for c in frame.columns if "/" in c}, key=_metric_order)
    frame = frame.reindex(columns=[*head, *metrics])
    for column in (*_WHOLE, *_NUMBERS, *metrics):
        frame[column] = pd.to_numeric(frame[column])
    frame["as_expected"] = frame["as_expected"].astype("boolean")
    frame["calibration"] = frame["calibration"].eq(True)
    return frame.sort_values(["g_steps", "d_steps", "strategy", "arm_key", "seed"], kind="stable", ignore_index=True)


def _metric_order(key: str) -> tuple[int, str]:
    order = {name: n for n, name in enumerate(FINALS)}
    return (-1 if key.startswith("quality/") else order.get(key, len(order)), key)


def varying(frame: pd.DataFrame) -> list[str]:
    """The params in which the arms of a frame differ, besides the ratio's and the strategy's own."""
    own = ("ratio", "g_steps", "d_steps", "strategy")
    return [name for name in PARAMS if name not in own and frame[name].nunique(dropna=False) > 1]
