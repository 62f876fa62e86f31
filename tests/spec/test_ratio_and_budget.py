"""A ratio and a budget are read once, at the edge, and spelled back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganbench.spec.budget import UNITS, Budget
from ganbench.spec.ratio import UpdateRatio

SIDE = st.integers(1, 999_999)
COUNTERS = {"rounds": 10, "g_updates": 50, "d_updates": 20, "real_images": 640, "seconds": 2.5}


@given(SIDE, SIDE)
def test_a_ratio_comes_back_as_it_was_written(g: int, d: int) -> None:
    ratio = UpdateRatio(g, d)
    assert str(ratio) == f"{g}:{d}"
    assert UpdateRatio.parse(str(ratio)) == ratio
    assert UpdateRatio.parse(ratio) is ratio


@given(SIDE, SIDE, st.integers(2, 9))
def test_a_ratio_is_never_reduced(g: int, d: int, times: int) -> None:
    g, d = g // 10 + 1, d // 10 + 1
    assert UpdateRatio.parse(f"{g * times}:{d * times}") != UpdateRatio.parse(f"{g}:{d}")
    assert str(UpdateRatio.parse(f"{g * times}:{d * times}")) == f"{g * times}:{d * times}"


def test_white_space_around_the_numbers_is_no_matter() -> None:
    assert UpdateRatio.parse(" 5 : 1 ") == UpdateRatio(5, 1)


@pytest.mark.parametrize("text", ["0:5", "1:0", "0:0"])
def test_a_side_below_one_is_told_with_the_rule(text: str) -> None:
    with pytest.raises(ValueError, match=f"at least 1, got '{text}'.*5:1"):
        UpdateRatio.parse(text)


@pytest.mark.parametrize(
    "wrong",
    [
        "5",
        "1:1:1",
        "-1:2",
        "1:-2",
        "+1:2",
        "1.5:1",
        "1e1:1",
        "",
        ":",
        "1:",
        ":1",
        "٣:١",
        "５:1",
        "²:1",
        "5/1",
        "a:b",
        "1_0:1",
        "0x1:1",
        "1:1 x",
        "1 1:1",
        "1234567:1",
        None,
        True,
        False,
        5,
        301,
        1.5,
        (5, 1),
        [5, 1],
        b"5:1",
        {"g": 5, "d": 1},
    ],
)
def test_what_is_no_ratio_is_refused_with_what_was_given(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"a ratio is g:d with two whole numbers, got ") as told:
        UpdateRatio.parse(wrong)
    assert f"'{wrong}'" in str(told.value)
    assert "5:1" in str(told.value)


@given(st.text() | st.from_regex(r"[0-9:\s٣-]{0,9}", fullmatch=True))
def test_any_text_is_a_ratio_or_a_value_error(text: str) -> None:
    try:
        ratio = UpdateRatio.parse(text)
    except ValueError:
        return
    assert ratio.g >= 1
    assert ratio.d >= 1
    assert UpdateRatio.parse(str(ratio)) == ratio


@given(st.integers(1, 10**15), st.sampled_from(UNITS))
def test_a_whole_budget_comes_back_as_it_was_written(amount: int, unit: str) -> None:
    budget = Budget.parse(f"{amount} {unit}")
    assert (budget.amount, budget.unit) == (amount, unit)
    assert str(budget) == f"{amount} {unit}"
    assert Budget.parse(str(budget)) == budget


@given(st.floats(1e-9, 1e15, allow_nan=False))
def test_seconds_may_be_a_fraction_and_come_back_exactly(amount: float) -> None:
    budget = Budget(amount, "seconds")
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("2000 updates", 2000, "updates"),
        ("2_000 rounds", 2000, "rounds"),
        ("1e3 real_images", 1000, "real_images"),
        (" 1.5  seconds ", 1.5, "seconds"),
        ("1e-7 seconds", 1e-7, "seconds"),
        ("3.0 g_updates", 3, "g_updates"),
    ],
)
def test_ways_to_write_a_budget(text: str, amount: float, unit: str) -> None:
    assert Budget.parse(text) == Budget(amount, unit)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("2000", ["'2000'", "2000 updates"]),
        ("updates", ["'updates'"]),
        ("2000updates", ["'2000updates'"]),
        ("2000 update", ["'update'", "did you mean 'updates'", "real_images"]),
        ("2000 Updates", ["'Updates'", "'updates'"]),
        ("1.5 updates", ["whole number", "'1.5 updates'"]),
        ("0 rounds", ["from 1", "'0 rounds'"]),
        ("0 seconds", ["above 0", "'0 seconds'"]),
        ("-5 rounds", ["'-5 rounds'"]),
        ("1e16 updates", ["1e15"]),
        ("1e99 seconds", ["1e15"]),
        ("٣ updates", ["'٣ updates'"]),
        ("nan seconds", ["'nan seconds'"]),
        ("inf seconds", ["'inf seconds'"]),
        (2000, ["'2000'"]),
        (None, ["'None'"]),
        (True, ["'True'"]),
        ({}, ["'{}'"]),
    ],
)
def test_what_is_no_budget_is_refused(wrong: object, words: list[str]) -> None:
    with pytest.raises(ValueError, match="budget") as told:
        Budget.parse(wrong)
    assert [word for word in words if word not in str(told.value)] == []


@given(st.text() | st.from_regex(r"[0-9.eE_+-]{1,12} (seconds|updates)", fullmatch=True))
def test_any_text_is_a_budget_or_a_value_error(text: str) -> None:
    try:
        budget = Budget.parse(text)
    except ValueError:
        return
    assert 0 < budget.amount <= 1e15
    assert budget.unit == "seconds" or budget.amount == int(budget.amount)
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    ("unit", "spent"),
    [("rounds", 10), ("g_updates", 50), ("d_updates", 20), ("updates", 70), ("real_images", 640), ("seconds", 2.5)],
)
def test_a_budget_is_held_against_its_own_counter(unit: str, spent: float) -> None:
    assert Budget(spent, unit).spent(COUNTERS) == spent
    assert Budget(spent, unit).met(COUNTERS)
    assert Budget(spent / 2, unit).met(COUNTERS)
    assert not Budget(spent * 1.01, unit).met(COUNTERS)
    assert Budget(spent * 2, unit).progress(COUNTERS) == 0.5
    assert Budget(spent / 2, unit).progress(COUNTERS) == 2


def test_a_part_of_a_budget_is_at_least_one_whole_unit() -> None:
    assert Budget(1000, "updates").part(4) == Budget(250, "updates")
    assert Budget(10, "rounds").part(4) == Budget(2, "rounds")
    assert Budget(3, "rounds").part(4) == Budget(1, "rounds")
    assert Budget(1, "seconds").part(4) == Budget(0.25, "seconds")
