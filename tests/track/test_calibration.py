"""An A/A copy of the reference: the same training, timed once more, never taken for an arm."""

from __future__ import annotations

from pathlib import Path

from stores import carry_out, small_sweep

from ganbench.cli.output import frame_rows
from ganbench.report.cost import compare
from ganbench.report.frame import frame_of
from ganbench.track.reader import Reader
from ganbench.track.store import Store


def test_copies_are_runs_of_their_own_with_the_weights_of_the_reference(tmp_path: Path) -> None:
    sweep = small_sweep(strategy=["detach", "inputs"], calibrate=True, seeds=3)
    plain = small_sweep(strategy=["detach", "inputs"], seeds=3)
    assert {arm.arm_key for arm in plain.arms} < {arm.arm_key for arm in sweep.arms}
    assert len(sweep.arms) == 3
    store = Store(f"sqlite:///{tmp_path}/mlflow.db")
    result, _ = carry_out(sweep, store, tmp_path / "log", jobs=1)
    assert result.exit_code == 0
    copies = [run for run in result.runs.values() if run.tags.get("ganbench.calibration") == "true"]
    assert len(copies) == 3
    assert {run.reason for run in copies} == {"weights bit-equal to detach"}
    frame = frame_of(frame_rows(result.runs.values(), "small"))
    found = {(c.strategy, c.is_copy): c for c in compare(frame)}
    assert set(found) == {("detach", True), ("inputs", False)}
    assert found["inputs", False].cost.n == 3
    assert found["inputs", False].floor is not None
    record = Reader(store).record(copies[0].run_id)
    assert record.spec.calibration
    assert record.trust is not None
    assert record.trust.accounted is not None
    assert 0.98 <= record.trust.accounted <= 1.02
    assert record.memory is not None
    assert record.memory.peak_bytes / 2**20 == record.finals["memory/live_peak_mib"]


def test_runs_side_by_side_are_marked_and_kept_out_of_the_cost_table(tmp_path: Path) -> None:
    sweep = small_sweep(strategy=["detach", "inputs"], seeds=1)
    result, _ = carry_out(sweep, Store(f"sqlite:///{tmp_path}/mlflow.db"), tmp_path / "log", jobs=2)
    frame = frame_of(frame_rows(result.runs.values(), "small"))
    assert set(frame["unfit_for_cost"]) == {"timed with up to 2 runs side by side"}
    assert compare(frame) == []
