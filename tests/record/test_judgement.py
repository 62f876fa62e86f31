"""Expectation against what happened: a mismatch is reported, never hidden."""

from __future__ import annotations

import pytest

from ganbench.record.judgement import Judged, judge
from ganbench.spec.strategy import Verdict

REFERENCE = Judged("ref", "pair", "detach", Verdict.REFERENCE, True, True, "aa", True)


def judged(
    verdict: Verdict,
    weights: str | None = "aa",
    *,
    declared: bool = True,
    ok: bool = True,
    exact: bool = True,
    pair: str = "pair",
) -> Judged:
    return Judged("run", pair, "some_strategy", verdict, declared, ok, weights, exact)


@pytest.mark.parametrize(
    ("run", "as_expected", "reason"),
    [
        (judged(Verdict.SAME, "aa"), True, "weights bit-equal to detach"),
        (judged(Verdict.SAME, "bb"), False, "expected the trajectory of detach, but the weights differ"),
        (judged(Verdict.SAME, "bb", exact=False), True, "this device does not make bit-equal"),
        (judged(Verdict.SAME, "aa", exact=False), True, "weights bit-equal to detach"),
        (judged(Verdict.SAME, declared=False, ok=False), False, "expected 'same', but its outcome is another"),
        (judged(Verdict.SAME, None), True, "not checked"),
        (judged(Verdict.CONTAMINATED, "bb"), True, "as expected of 'contaminated'"),
        (judged(Verdict.CONTAMINATED, "aa"), False, "expected 'contaminated', but the weights are bit-equal"),
        (judged(Verdict.CONTAMINATED, "bb", exact=False), True, "as expected of 'contaminated'"),
        (judged(Verdict.STALE, "aa"), False, "expected 'stale', but the weights are bit-equal"),
        (judged(Verdict.STALE, "bb"), True, "as expected of 'stale'"),
        (judged(Verdict.OTHER_ESTIMATOR, "aa"), True, "came out as 'other estimator'"),
        (judged(Verdict.OTHER_ESTIMATOR, "bb"), True, "came out as 'other estimator'"),
        (judged(Verdict.RAISES, None, ok=False), True, "came out as 'raises'"),
        (judged(Verdict.RAISES, "aa", declared=False), False, "expected 'raises', but its outcome is another"),
        (judged(Verdict.TO_BE_JUDGED, "aa"), True, "weights bit-equal to detach"),
        (judged(Verdict.TO_BE_JUDGED, "bb"), True, "weights differ from detach"),
        (judged(Verdict.TO_BE_JUDGED, declared=False), False, "its outcome is another"),
    ],
    ids=str,
)
def test_a_run_beside_its_reference(run: Judged, as_expected: bool, reason: str) -> None:
    result = judge([REFERENCE, run])
    assert result["ref"].as_expected
    assert result["run"].as_expected is as_expected
    assert reason in result["run"].reason
    assert judge([run, REFERENCE]) == result


ABSENT = [
    [],
    [Judged("ref", "pair", "detach", Verdict.REFERENCE, False, False, None, True)],
    [Judged("ref", "pair", "detach", Verdict.REFERENCE, True, True, None, True)],
    [Judged("ref", "other seed", "detach", Verdict.REFERENCE, True, True, "zz", True)],
]


@pytest.mark.parametrize("beside", ABSENT, ids=["none", "failed", "without weights", "another seed"])
@pytest.mark.parametrize("verdict", [Verdict.SAME, Verdict.CONTAMINATED, Verdict.STALE, Verdict.TO_BE_JUDGED])
def test_without_the_reference_only_the_outcome_is_judged(beside: list[Judged], verdict: Verdict) -> None:
    result = judge([*beside, judged(verdict)])["run"]
    assert result.as_expected
    assert "not checked" in result.reason
    result = judge([*beside, judged(verdict, declared=False)])["run"]
    assert not result.as_expected


def test_a_reference_that_failed_is_not_as_expected() -> None:
    assert not judge(ABSENT[1])["ref"].as_expected


def test_each_run_is_held_against_the_reference_of_its_own_pair() -> None:
    other = Judged("ref2", "pair2", "detach", Verdict.REFERENCE, True, True, "bb", True)
    mine, its = judged(Verdict.SAME, "bb"), judged(Verdict.SAME, "bb", pair="pair2")
    assert not judge([REFERENCE, other, mine])["run"].as_expected
    assert judge([REFERENCE, other, its])["run"].as_expected
    assert judge([]) == {}


def test_weights_after_another_number_of_rounds_are_not_compared() -> None:
    from ganbench.record.judgement import Judged, judge
    from ganbench.spec.strategy import Verdict

    def one(strategy: str, verdict: Verdict, weights: str, rounds: int) -> Judged:
        return Judged(strategy, "pair", strategy, verdict, True, True, weights, True, rounds=rounds)

    found = judge([one("detach", Verdict.REFERENCE, "a", 994), one("inputs", Verdict.SAME, "b", 973)])
    assert found["inputs"].as_expected
    assert found["inputs"].reason == "ran; 973 rounds against 994: weights cannot be compared"
    assert not judge([one("detach", Verdict.REFERENCE, "a", 9), one("inputs", Verdict.SAME, "b", 9)])[
        "inputs"
    ].as_expected
