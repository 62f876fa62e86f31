"""A sweep goes on where it stopped: nothing twice, nothing lost, aggregates of what is there."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from stores import Silent, carry_out, small_sweep

from ganbench.errors import StoreError
from ganbench.execute.local import LocalExecutor
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended, Event, Started, Task
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.sweep import run_sweep, to_do
from ganbench.track.run_log import Header, RunLog, new_attempt, read_log
from ganbench.track.store import Store, masked
from ganbench.track.tracker import Tracker


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path}/mlflow.db")


def active(store: Store, kind: str) -> list[Any]:
    experiment = store.experiment("small")
    assert experiment is not None
    return store.runs(experiment.experiment_id, f"tags.`ganbench.kind` = '{kind}'")


def test_a_second_call_makes_nothing_and_more_seeds_make_only_those(store: Store, tmp_path: Path) -> None:
    first, _ = carry_out(small_sweep(), store, tmp_path / "log")
    assert first.made == 6
    again, watcher = carry_out(small_sweep(), store, tmp_path / "log")
    assert (again.made, again.reused, watcher.todo, watcher.done) == (0, 6, 0, 6)
    assert again.exit_code == 0
    more, watcher = carry_out(small_sweep(seeds=3), store, tmp_path / "log")
    assert (more.made, more.reused) == (3, 6)
    assert {spec.seed for spec in watcher.order} == {2}
    # The arms are made anew from three seeds, with all of them as children.
    arms = active(store, "arm")
    assert len(arms) == 3
    for arm in arms:
        children = [r for r in active(store, "run") if r.data.tags["mlflow.parentRunId"] == arm.info.run_id]
        assert len(children) == 3
        if arm.data.params["strategy"] != "reuse":
            values = [child.data.metrics["time/round_ms"] for child in children]
            assert arm.data.metrics["time/round_ms"] == pytest.approx(sum(values) / 3)
    # Each metric of an arm has one value a step: no old mean stands beside the new one.
    counted = sqlite3.connect(tmp_path / "mlflow.db").execute(
        "select count(*) from (select run_uuid, key, step, count(*) n from metrics group by 1, 2, 3 having n > 1)"
    )
    assert counted.fetchone() == (0,)


def test_retry_and_fresh_choose_what_is_made_again(store: Store, tmp_path: Path) -> None:
    sweep = small_sweep(seeds=1)
    carry_out(sweep, store, tmp_path / "log")
    failed, _ = carry_out(sweep, store, tmp_path / "log", retry="failed")
    assert failed.made == 0  # the control came out as expected
    every, watcher = carry_out(sweep, store, tmp_path / "log", retry="all")
    assert every.made == 1
    assert watcher.order[0].strategy == "reuse"
    fresh, _ = carry_out(sweep, store, tmp_path / "log", retry="fresh")
    assert fresh.made == 3
    assert len(active(store, "run")) == 3  # the runs that were replaced are gone


def test_an_interrupted_sweep_keeps_what_was_finished_and_goes_on(store: Store, tmp_path: Path) -> None:
    sweep = small_sweep()
    stop = Stop()

    class StopsAfterTwo(Silent):
        def ended(self, spec: RunSpec, label: str, event: Ended) -> None:  # noqa: ARG002
            self.done += 1
            if self.done == 2:
                stop.request()

    tracker = Tracker(store, sweep, tmp_path / "log")
    result = run_sweep(sweep, LocalExecutor(1, stop), tracker, stop, StopsAfterTwo())
    assert result.interrupted
    assert result.exit_code == 130
    finished = [run for run in result.runs.values() if run.outcome is not None and run.outcome.is_result]
    assert len(finished) == 2
    assert not [run for run in active(store, "run") if run.info.status == "RUNNING"]
    assert not [arm for arm in active(store, "arm") if arm.info.status == "RUNNING"]
    rest, _watcher = carry_out(sweep, store, tmp_path / "log")
    assert (rest.made, rest.reused) == (4, 2)
    assert rest.exit_code == 0
    assert len(active(store, "run")) == 6
    assert len(active(store, "arm")) == 3
    assert all(arm.data.tags["ganbench.outcome"] in ("ok", "raised") for arm in active(store, "arm"))


def test_a_log_left_behind_is_shipped_once_even_when_it_was_half_shipped(store: Store, tmp_path: Path) -> None:
    sweep = small_sweep(strategy=["detach"], seeds=1)
    events = list(LocalExecutor().run(_tasks(sweep)))
    # A first process logged all of it and shipped the beginning before it died.
    tracker = Tracker(store, sweep, tmp_path / "log")
    tracker.begin(_tasks(sweep)[0])
    log, shipper = next(iter(tracker._logs.values()))
    for event in events:
        log.append(event)
    for event in events[: len(events) // 2]:
        shipper.ship(event)
    shipper._send()
    log.close()
    result, _ = carry_out(sweep, store, tmp_path / "log")
    assert (result.made, result.reused) == (0, 1)
    assert len(active(store, "run")) == 1
    (run,) = active(store, "run")
    assert run.info.status == "FINISHED"
    steps = [p.step for p in store.client.get_metric_history(run.info.run_id, "loss/d")]
    assert len(steps) == len(set(steps)) == 40


def test_a_run_whose_process_died_is_closed_as_interrupted_and_made_again(store: Store, tmp_path: Path) -> None:
    sweep = small_sweep(strategy=["detach"], seeds=1)
    tracker = Tracker(store, sweep, tmp_path / "log")
    (task,) = _tasks(sweep)
    tracker.begin(task)
    tracker.append(Started(task.run_key, 1000.0))
    tracker.drain()
    tracker._logs[task.run_key][0].close()
    (run,) = active(store, "run")
    assert run.info.status == "RUNNING"
    result, _ = carry_out(sweep, store, tmp_path / "log")
    assert result.made == 1
    (run,) = active(store, "run")
    assert run.info.status == "FINISHED"


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    sweep = small_sweep(strategy=["detach"], seeds=1)
    (task,) = _tasks(sweep)
    header = Header(new_attempt(), "small", sweep.sweep_id, 0, "sqlite:///x", "label", task.spec)
    log = RunLog(tmp_path, header)
    events: list[Event] = [Started(task.run_key, 1.0), *list(LocalExecutor().run([task]))[1:]]
    for event in events:
        log.append(event)
    log.close()
    read_header, read_events, damaged = read_log(log.path)
    assert (read_header, damaged) == (header, 0)
    assert [type(e) for e in read_events] == [type(e) for e in events]
    assert json.dumps(_plain(read_events[-1])) == json.dumps(_plain(events[-1]))
    raw = log.path.read_bytes()
    log.path.write_bytes(raw[:-40])  # a torn last line
    assert read_log(log.path)[2] == 1
    lines = raw.split(b"\n")
    lines[2] = b"garbage" + lines[2]
    log.path.write_bytes(b"\n".join(lines))
    assert read_log(log.path)[2] == 1
    log.path.write_bytes(b"nothing of ours\n")
    with pytest.raises(StoreError, match="no readable head"):
        read_log(log.path)


def test_a_store_that_cannot_be_opened_is_one_line_without_the_password() -> None:
    with pytest.raises(StoreError) as caught:
        Store("postgresql+nosuchdriver://user:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert masked("http://ann:pw@host/x") == "http://ann:***@host/x"


def _plain(event: Event) -> object:
    assert isinstance(event, Ended)
    return {"outcome": event.outcome, "found": event.found}


def _tasks(sweep: SweepSpec) -> list[Task]:
    return to_do(sweep.runs(), {}, "none")
