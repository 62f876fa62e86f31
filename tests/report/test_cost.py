"""Cost against the reference: paired by block, never pooled over hosts, and no claim inside the noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ganbench.report.cost import compare, cost_table, split_by_host, usable
from ganbench.report.frame import frame_of


def row(strategy: str, seed: int, ms: float, *, copy: bool = False, ratio: str = "2:1", **more: Any) -> dict[str, Any]:
    g, d = ratio.split(":")
    return {
        "arm_key": f"{ratio} {strategy} {copy} {more.get('loss', 'bce')}",
        "run_key": f"{ratio}{strategy}{seed}{copy}",
        "seed": seed,
        "ratio": ratio,
        "g_steps": g,
        "d_steps": d,
        "strategy": strategy,
        "device": "cpu",
        "outcome": "ok",
        "as_expected": True,
        "calibration": copy,
        "pairing": f"{ratio} {seed} {more.get('loss', 'bce')}",
        "time/round_ms": ms,
        "host.cpu": "one",
        **more,
    }


def drifting(factors: dict[str, float], seeds: int = 10, noise: float = 0.01) -> pd.DataFrame:
    """Blocks on a machine that slows down by half from first to last."""
    rng = np.random.default_rng(3)
    rows = []
    for seed in range(seeds):
        block = 10.0 * (1 + 0.5 * seed / seeds)
        for name, factor in factors.items():
            strategy, _, mark = name.partition("+")
            rows.append(row(strategy, seed, block * factor * math.exp(rng.normal(0, noise)), copy=mark == "copy"))
    return frame_of(rows)


def test_pairing_by_block_finds_a_difference_that_drift_would_hide() -> None:
    found = {c.strategy: c for c in compare(drifting({"detach": 1, "detach+copy": 1, "inputs": 0.9, "toggle": 1.0}))}
    inputs = found["inputs"]
    assert inputs.cost.estimate == pytest.approx(0.9, rel=0.01)
    assert inputs.cost.low is not None
    assert inputs.cost.high is not None
    assert inputs.cost.low < 0.9 < inputs.cost.high < 0.93
    assert inputs.verdict == "faster"
    assert inputs.test is not None
    assert inputs.test.adjusted is not None
    assert inputs.test.adjusted < 0.05
    assert found["toggle"].verdict == "within noise"
    assert found["detach"].is_copy
    assert found["detach"].verdict == "noise floor"
    assert found["inputs"].floor is not None


def test_without_a_copy_the_floor_is_not_measured_and_the_table_says_so() -> None:
    table = cost_table(compare(drifting({"detach": 1, "inputs": 0.9})))
    assert list(table["floor"]) == ["not measured"]
    assert list(table["blocks"]) == ["10"]


def test_too_few_blocks_give_a_number_but_no_claim() -> None:
    (only,) = compare(drifting({"detach": 1, "inputs": 0.5}, seeds=2))
    assert only.cost.low is None
    assert only.verdict == "not known"
    assert "needs" in cost_table([only])["p (Holm)"].iloc[0]


def test_a_block_without_its_reference_is_left_out() -> None:
    frame = drifting({"detach": 1, "inputs": 0.9}, seeds=6)
    frame = frame[~((frame["strategy"] == "detach") & (frame["seed"] == 0))]
    (only,) = compare(frame)
    assert only.cost.n == 5


LOAD = "disturbed: 1.90 cores of foreign load while it was timed"


def test_pairs_with_a_disturbed_run_are_left_out_where_enough_others_remain() -> None:
    """A busy program that comes in the middle of a sweep, and in the middle of a block."""
    rows = [row(s, seed, ms) for seed in range(3) for s, ms in (("detach", 10.0), ("inputs", 9.0))]
    rows += [row("detach", 3, 10.0), row("inputs", 3, 40.0, warnings=LOAD)]
    rows += [row("detach", 4, 10.0), row("inputs", 4, 45.0, warnings=LOAD)]
    rows += [row(s, 5, ms, warnings=LOAD) for s, ms in (("detach", 45.0), ("inputs", 50.0))]
    frame = frame_of(rows)
    (only,) = compare(frame)
    assert only.cost.n == 3
    assert only.cost.estimate == pytest.approx(0.9)
    unpaired = frame.groupby("strategy")["time/round_ms"].mean()
    assert abs(unpaired["inputs"] / unpaired["detach"] - 0.9) > 0.05
    assert usable(frame)[1] == [
        "4 of 12 runs were disturbed: their pairs are left out of a ratio where 3 others remain; see their warnings"
    ]


def test_disturbed_pairs_are_used_where_there_is_nothing_else() -> None:
    rows = [row(s, seed, ms) for seed in range(2) for s, ms in (("detach", 10.0), ("inputs", 9.0))]
    rows += [row(s, seed, ms, warnings=LOAD) for seed in (2, 3) for s, ms in (("detach", 40.0), ("inputs", 36.0))]
    (only,) = compare(frame_of(rows))
    assert only.cost.n == 4


def test_other_settings_have_a_reference_of_their_own() -> None:
    rows = [row(s, seed, ms, loss=loss) for loss, base in (("bce", 10.0), ("hinge", 20.0)) for seed in range(4)
            for s, ms in (("detach", base), ("inputs", base * 0.9))]  # fmt: skip
    found = compare(frame_of(rows))
    assert [(c.settings["loss"], round(c.cost.estimate, 6)) for c in found] == [("bce", 0.9), ("hinge", 0.9)]


def test_hosts_are_compared_apart_and_the_fact_is_named() -> None:
    rows = [row("detach", s, 10.0, **{"host.cpu": cpu}) for s, cpu in ((0, "one"), (1, "two"))]
    rows += [row("inputs", s, 9.0, **{"host.cpu": cpu}) for s, cpu in ((0, "one"), (1, "two"))]
    parts, lines = split_by_host(frame_of(rows))
    assert [set(part["host.cpu"]) for part in parts] == [{"one"}, {"two"}]
    assert lines == ["runs differ in host.cpu (one, two): their times are compared apart"]
    assert split_by_host(frame_of(rows[:1] + rows[2:3]))[1] == []


def test_facts_of_the_gpu_alone_do_not_split_a_sweep_over_both_devices() -> None:
    rows = [row("detach", 0, 10.0), row("detach", 1, 1.0, device="cuda", **{"host.gpu": "H200"})]
    rows[0]["device"] = "cpu"
    parts, lines = split_by_host(frame_of(rows))
    assert (len(parts), lines) == (1, [])


def test_runs_timed_side_by_side_and_failed_ones_stay_out_and_are_counted() -> None:
    rows = [row("detach", 0, 10.0), row("inputs", 0, 9.0, unfit_for_cost="timed with up to 2 runs side by side")]
    rows.append(row("toggle", 0, 9.0, outcome="raised"))
    rows.append(row("retain_deferred", 0, 12.0, warnings="disturbed: 1.50 cores of foreign load while it was timed"))
    kept, lines = usable(frame_of(rows))
    assert set(kept["strategy"]) == {"detach", "retain_deferred"}
    assert "1 runs are left out" in lines[0]
    assert "1 of 2 runs were disturbed" in lines[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
)
def test_no_claim_is_ever_made_inside_the_floor(values: list[float], copies: list[float]) -> None:
    n = min(len(values), len(copies))
    rows = [row("detach", s, 10.0) for s in range(n)]
    rows += [row("detach", s, 10.0 * copies[s], copy=True) for s in range(n)]
    rows += [row("inputs", s, 10.0 * values[s]) for s in range(n)]
    found = {c.strategy: c for c in compare(frame_of(rows))}
    cost, floor = found["inputs"].cost, found["inputs"].floor
    assert floor is not None
    assert cost.low is not None
    assert cost.high is not None
    if cost.low <= floor.factor and cost.high >= 1 / floor.factor:
        assert found["inputs"].verdict == "within noise"
    else:
        assert found["inputs"].verdict == ("slower" if cost.estimate > 1 else "faster")


def test_the_same_frame_gives_the_same_table() -> None:
    frame = drifting({"detach": 1, "detach+copy": 1, "inputs": 0.95})
    assert cost_table(compare(frame)).equals(cost_table(compare(frame.sample(frac=1, random_state=1))))


def test_a_sweep_in_which_nothing_was_timed_compares_nothing() -> None:
    skipped = row("detach", 0, 1.0, outcome="skipped")
    del skipped["time/round_ms"]
    frame = frame_of([skipped])
    assert compare(frame) == []
    assert split_by_host(frame)[1] == []


def test_runs_that_never_trained_have_no_host_to_differ_in() -> None:
    rows = [row("detach", 0, 10.0), row("reuse", 0, 1.0, outcome="crashed", **{"host.cpu": None})]
    assert split_by_host(frame_of(rows))[1] == []
