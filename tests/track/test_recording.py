"""What stands in MLflow after a sweep: exactly what DESIGN 6 names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from stores import Carried, small_sweep

from ganbench.record.outcome import Outcome
from ganbench.spec.experiment import read_fields
from ganbench.spec.sweep import SweepSpec
from ganbench.track import spelling
from ganbench.track.reader import Reader

PARAMS = {
    "ratio",
    "g_steps",
    "d_steps",
    "strategy",
    "order",
    "real_batches",
    "device",
    "model",
    "dataset",
    "loss",
    "batch_size",
    "latent_dim",
    "optimizer",
    "g_lr",
    "d_lr",
    "budget",
    "precision",
    "compile",
    "seed",
    "threads",
}
TAGS = {f"ganbench.{name}" for name in ("kind", "sweep", "arm", "outcome", "expected", "as_expected", "version")}
CURVES = {"loss/g", "loss/d", "loss/d_real", "loss/d_fake", "score/real", "score/fake"}
FINALS = {
    "time/round_ms",
    "time/round_ms_p95",
    "time/g_phase_ms",
    "time/d_phase_ms",
    "throughput/updates_per_second",
    "throughput/images_per_second",
    "memory/live_peak_mib",
    "memory/live_peak_mib_g_phase",
    "memory/live_peak_mib_d_phase",
    "memory/rss_peak_mib",
    "time/train_s",
    "time/startup_s",
}


def mlflow_runs(carried: Carried, kind: str) -> list[Any]:
    experiment = carried.store.experiment("small")
    assert experiment is not None
    return carried.store.runs(experiment.experiment_id, f"tags.`ganbench.kind` = '{kind}'")


def artifacts(carried: Carried, run_id: str, path: str = "") -> set[str]:
    return {item.path for item in carried.store.client.list_artifacts(run_id, path)}


def test_arms_are_parents_of_their_seeds_one_level_deep(carried: Carried) -> None:
    arms, runs = mlflow_runs(carried, "arm"), mlflow_runs(carried, "run")
    assert len(arms) == 3
    assert len(runs) == 6
    by_id = {arm.info.run_id: arm for arm in arms}
    for run in runs:
        parent = by_id[run.data.tags["mlflow.parentRunId"]]
        assert parent.data.tags["ganbench.arm"] == run.data.tags["ganbench.arm"]
    assert all("mlflow.parentRunId" not in arm.data.tags for arm in arms)
    assert {arm.info.run_name for arm in arms} == {"1:2 detach cpu", "1:2 inputs cpu", "1:2 reuse cpu"}
    assert {run.info.run_name for run in runs} == {"seed 0", "seed 1"}


def test_params_and_tags_have_their_exact_names(carried: Carried) -> None:
    for run in mlflow_runs(carried, "run"):
        assert set(run.data.params) == PARAMS
        assert set(run.data.tags) >= TAGS | {"ganbench.run_key", "mlflow.note.content", "host.cpu", "host.torch"}
        assert run.data.params["ratio"] == "1:2"
        assert (run.data.params["g_steps"], run.data.params["d_steps"]) == ("1", "2")
    for arm in mlflow_runs(carried, "arm"):
        assert set(arm.data.params) == PARAMS - {"seed"}
        assert set(arm.data.tags) >= TAGS | {"mlflow.note.content", "host.cpu"}


def test_a_control_that_fails_as_expected_is_failed_and_as_expected(carried: Carried) -> None:
    for kind in ("run", "arm"):
        controls = [r for r in mlflow_runs(carried, kind) if r.data.params["strategy"] == "reuse"]
        assert controls
        for run in controls:
            assert run.info.status == "FAILED"
            assert run.data.tags["ganbench.outcome"] == "raised"
            assert run.data.tags["ganbench.error_kind"] == "graph_freed"
            assert run.data.tags["ganbench.as_expected"] == "true"


def test_metrics_have_their_exact_names_and_steps_count_updates(carried: Carried) -> None:
    for run in mlflow_runs(carried, "run"):
        if run.data.tags["ganbench.outcome"] != "ok":
            continue
        assert set(run.data.metrics) >= CURVES | FINALS | {"quality/fd_pixels", "quality/coverage"}
        history = carried.store.client.get_metric_history(run.info.run_id, "loss/g")
        # 1:2, g first: updates 1, 4, 7, … are the generator's.
        assert sorted(point.step for point in history) == list(range(1, 60, 3))
        quality = carried.store.client.get_metric_history(run.info.run_id, "quality/fd_pixels")
        assert sorted(point.step for point in quality) == [0, 30, 60]
        assert all(math.isfinite(value) for value in run.data.metrics.values())


def test_an_arm_carries_the_mean_of_its_seeds_under_the_same_keys(carried: Carried) -> None:
    client = carried.store.client
    for arm in mlflow_runs(carried, "arm"):
        if arm.data.params["strategy"] == "reuse":
            continue
        seeds = [r for r in mlflow_runs(carried, "run") if r.data.tags["mlflow.parentRunId"] == arm.info.run_id]
        for key in FINALS:
            values = [seed.data.metrics[key] for seed in seeds]
            assert arm.data.metrics[key] == pytest.approx(sum(values) / 2)
        for key in ("loss/d", "quality/fd_pixels"):
            curves = [{p.step: p.value for p in client.get_metric_history(s.info.run_id, key)} for s in seeds]
            mean = {p.step: p.value for p in client.get_metric_history(arm.info.run_id, key)}
            assert set(mean) == set(curves[0]) == set(curves[1])
            assert mean == pytest.approx({step: (curves[0][step] + curves[1][step]) / 2 for step in mean})
        assert "95 % interval" in arm.data.tags["mlflow.note.content"]
        assert "record.json" in artifacts(carried, arm.info.run_id)


def test_artifacts_are_complete_and_config_reproduces_the_run(carried: Carried, tmp_path: Path) -> None:
    for run in mlflow_runs(carried, "run"):
        names = artifacts(carried, run.info.run_id)
        raised = run.data.tags["ganbench.outcome"] == "raised"
        assert names >= {"record.json", "config.yaml"} | (
            {"traceback.txt"} if raised else {"curves.parquet", "samples"}
        )
        record = Reader(carried.store).record(run.info.run_id)
        assert (record.happened is not None) is (record.remedy is not None) is raised
        config = carried.store.client.download_artifacts(run.info.run_id, "config.yaml", str(tmp_path))
        again = SweepSpec.from_fields(read_fields(Path(config)), "config")
        assert [spec.run_key for spec in again.runs()] == [run.data.tags["ganbench.run_key"]]
        if not raised:
            assert artifacts(carried, run.info.run_id, "samples") == {
                f"samples/{name}.png" for name in ("final", "step_000000000", "step_000000030", "step_000000060")
            }


def test_the_parquet_file_holds_every_update_and_counter(carried: Carried, tmp_path: Path) -> None:
    run = next(r for r in mlflow_runs(carried, "run") if r.data.params["strategy"] == "inputs")
    path = carried.store.client.download_artifacts(run.info.run_id, "curves.parquet", str(tmp_path))
    table = parquet.read_table(path).to_pylist()
    updates = [row for row in table if row["loss/g"] is not None or row["loss/d"] is not None]
    assert [row["step"] for row in updates] == list(range(1, 61))
    for row in updates:
        assert row["step"] == row["g_updates"] + row["d_updates"]
        assert row["real_images"] == row["rounds"] * 64
        assert row["updates_per_second"] > 0
    seconds = [row["seconds"] for row in updates]
    assert seconds == sorted(seconds)


def test_the_record_is_lossless(carried: Carried) -> None:
    reader = Reader(carried.store)
    for run in carried.result.runs.values():
        record = reader.record(run.run_id)
        assert record.run_key == run.run_key == record.spec.run_key
        assert record.outcome is run.outcome
        assert record.sweep == carried.result.sweep.sweep_id
        assert [spec.run_key for spec in carried.result.sweep.runs()][record.position] == run.run_key
        if record.outcome is Outcome.OK:
            assert len(record.timing.rounds) == 20
            assert record.finals["time/round_ms"] == run.metrics["time/round_ms"]


def test_strategies_that_claim_the_same_trajectory_have_it(carried: Carried) -> None:
    weights: dict[tuple[str, str], str] = {}
    for run in mlflow_runs(carried, "run"):
        if spelling.WEIGHTS in run.data.tags:
            weights[run.data.params["strategy"], run.data.params["seed"]] = run.data.tags[spelling.WEIGHTS]
    for seed in ("0", "1"):
        assert weights["detach", seed] == weights["inputs", seed]
    assert weights["detach", "0"] != weights["detach", "1"]


def test_nothing_is_left_in_the_log_and_the_sweep_is_found_again(carried: Carried) -> None:
    assert list((carried.folder / "log").iterdir()) == []
    assert carried.result.exit_code == 0
    (stored,) = Reader(carried.store).sweeps()
    assert stored.spec == carried.result.sweep
    assert [spec.run_key for spec in stored.spec.runs()] == [spec.run_key for spec in small_sweep().runs()]


def test_a_name_from_a_file_does_not_become_html_in_a_note(carried: Carried) -> None:
    experiment = carried.store.experiment("small")
    assert experiment is not None
    assert "<b>" not in experiment.tags["mlflow.note.content"]
