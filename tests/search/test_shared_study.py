"""Any number of processes share a study: exactly the trials that were asked for, each point once, none left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
import searching
from optuna.trial import TrialState
from searching import search_spec, study_of, value_at

from ganbench.errors import UsageError
from ganbench.search.lock import Lock
from ganbench.search.study import Claim, Nothing, SharedStudy
from ganbench.search.told import Told


@pytest.fixture(params=["sqlite", "journal"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/optuna.db" if request.param == "sqlite" else f"journal:{tmp_path}/optuna.log"


def finish(study: SharedStudy) -> list[Claim]:
    """Carry out all that is left."""
    done = []
    while isinstance(claim := study.claim(), Claim):
        study.tell(claim, value_at(claim))
        done.append(claim)
    return done


def points(study: SharedStudy) -> list[tuple[int, int]]:
    return sorted((t.params["g_steps"], t.params["d_steps"]) for t in study.study.trials)


def start(url: str, pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, searching.__file__, url, str(pause)], stdout=subprocess.PIPE, text=True)


def test_every_point_once_and_then_nothing(url: str) -> None:
    study = study_of(search_spec(), url)
    assert study.sampler == "brute"
    assert len(finish(study)) == 8
    assert study.claim() is Nothing.DONE
    assert points(study) == [(g, d) for g in range(1, 5) for d in (1, 2)]
    # On ring8 quality is the share of good points: more is better.
    assert study.study.best_trial.params == {"g_steps": 4, "d_steps": 2}


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2"])
def test_no_sampler_proposes_a_point_twice_or_more_trials_than_asked_for(url: str, sampler: str) -> None:
    study = study_of(search_spec(sampler=sampler, trials=7), url)
    finish(study)
    assert len(points(study)) == len(set(points(study))) == 7


def test_a_space_that_is_used_up_ends_the_search(url: str) -> None:
    study = study_of(search_spec(sampler="random", trials=20), url)
    assert len(finish(study)) == 8
    assert study.claim() is Nothing.DONE


def test_a_continued_study_goes_on_to_the_trials_in_all(url: str) -> None:
    finish(study_of(search_spec(sampler="tpe", trials=3), url))
    study = study_of(search_spec(sampler="tpe", trials=5), url)
    assert len(finish(study)) == 2
    assert len(set(points(study))) == 5


def test_a_trial_in_flight_is_waited_for_and_is_not_claimed_twice(url: str) -> None:
    study = study_of(search_spec(trials=1), url)
    claim = study.claim()
    assert isinstance(claim, Claim)
    assert study_of(search_spec(trials=1), url).claim() is Nothing.WAIT
    study.tell(claim, value_at(claim))
    assert study.claim() is Nothing.DONE


def test_a_released_trial_is_taken_over_with_its_parameters(url: str) -> None:
    first = study_of(search_spec(), url)
    claim = first.claim()
    assert isinstance(claim, Claim)
    first.release(claim)
    taken = study_of(search_spec(), url).claim()
    assert isinstance(taken, Claim)
    assert (taken.adopted, taken.trial.number, taken.params) == (True, claim.trial.number, claim.params)


def test_a_killed_process_leaves_no_trial_running_and_no_trial_more(url: str) -> None:
    for _ in range(3):
        child = start(url, 60)
        assert child.stdout is not None
        assert child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
    study = study_of(search_spec(), url)
    done = finish(study)
    assert done[0].adopted
    assert [trial.state for trial in study.study.trials] == [TrialState.COMPLETE] * 8
    assert len(set(points(study))) == 8


def test_a_process_that_died_before_it_wrote_its_name_is_taken_over(url: str) -> None:
    study = study_of(search_spec(), url)
    study.study.ask()  # no owner, no parameters
    claims = finish(study)
    assert claims[0].adopted
    assert sorted(len(claim.params) for claim in claims) == [2] * 8
    assert all(trial.state is TrialState.COMPLETE for trial in study.study.trials)


def test_processes_share_the_work(url: str) -> None:
    children = [start(url, 0.3) for _ in range(2)]
    numbers = []
    for child in children:
        out, _ = child.communicate(timeout=200)
        assert child.returncode == 0
        numbers.append({int(line) for line in out.split()})
    assert numbers[0] | numbers[1] == set(range(8))
    assert not numbers[0] & numbers[1]


def test_what_failed_without_a_result_is_asked_again_by_the_next_session_only(url: str) -> None:
    first = study_of(search_spec(trials=8), url)
    claim = first.claim()
    assert isinstance(claim, Claim)
    first.tell(claim, Told.failed("skipped", "no such device"))
    assert claim.params not in [other.params for other in finish(first)]
    again = finish(study_of(search_spec(trials=8), url))
    assert [other.params for other in again] == [claim.params]


def test_a_failed_trial_counts_and_is_never_the_best(url: str) -> None:
    study = study_of(search_spec(trials=3), url)
    claim = study.claim()
    assert isinstance(claim, Claim)
    study.tell(claim, Told.failed("diverged", "seed 0: the loss is not finite"))
    assert len(finish(study)) == 2
    assert study.study.trials[0].state is TrialState.FAIL
    assert study.study.trials[0].user_attrs["outcome"] == "diverged"
    assert study.study.best_trial.number != 0


def test_what_breaks_a_constraint_is_told_and_is_not_the_best(url: str) -> None:
    study = study_of(search_spec(trials=2, constraints={"memory": "1MiB"}), url)
    claim = study.claim()
    assert isinstance(claim, Claim)
    study.tell(claim, Told.infeasible({"memory": 3.0}, "the forecast is 4 MiB"))
    finish(study)
    assert study.study.trials[0].state is TrialState.PRUNED
    assert study.study.trials[0].constraints == {"memory": 3.0}
    assert study.study.best_trial.number == 1


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"objective": "throughput"}, "objectives"),
        ({"space": {"ratio": ["1:1", "2:1"]}}, "space"),
        ({"seeds": 5}, "seeds"),
        ({"constraints": {"seconds": 3}}, "constraints"),
    ],
)
def test_another_search_of_that_name_is_refused_with_the_part_that_differs(
    url: str, changed: dict[str, object], part: str
) -> None:
    study_of(search_spec(), url)
    with pytest.raises(UsageError, match=f"study 'small' has other {part}: .*was .*--storage"):
        study_of(search_spec(**changed), url)


def test_trials_sampler_and_pruner_may_change(url: str) -> None:
    study_of(search_spec(), url)
    study_of(search_spec(trials=5, sampler="random", pruner="median"), url)


def test_a_study_that_others_made_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/optuna.db"
    study = optuna.create_study(storage=url, study_name="small")
    study.tell(study.ask(), 1.0)
    with pytest.raises(UsageError, match="that ganbench did not make"):
        study_of(search_spec(), url)


def test_a_database_without_a_lock_is_refused() -> None:
    with pytest.raises(UsageError, match="sqlite, PostgreSQL or a journal"):
        Lock("mysql://user@127.0.0.1/optuna", "small")
