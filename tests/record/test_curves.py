"""Curves: rows with gaps, thinned alike whether they are live or replayed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganbench.record.curves import CurveTable, Thinner, rows_of

Row = dict[str, float]
Point = tuple[str, int, float]


def test_a_row_without_a_column_leaves_a_gap() -> None:
    table = CurveTable()
    table.append({"step": 2, "loss/g": 0.5})
    table.append({"step": 4, "quality/recall": 0.1})
    table.append({"step": 6, "loss/g": None, "quality/recall": 0.2})
    assert table.columns == {"step": [2, 4, 6], "loss/g": [0.5, None, None], "quality/recall": [None, 0.1, 0.2]}
    assert len(table) == 3
    assert list(table.rows()) == [
        {"step": 2, "loss/g": 0.5},
        {"step": 4, "quality/recall": 0.1},
        {"step": 6, "quality/recall": 0.2},
    ]


def test_taking_hands_the_rows_over_once() -> None:
    table = CurveTable()
    table.append({"step": 1, "loss/g": 0.5})
    assert table.take() == {"step": [1], "loss/g": [0.5]}
    assert len(table) == 0
    assert table.take() == {"step": []}
    assert list(rows_of({"step": []})) == []


def test_columns_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(rows_of({"step": [1, 2], "loss/g": [0.5]}))


KEYS = ("loss/g", "loss/d", "quality/recall", "g_updates")
VALUES = st.floats(-10, 10) | st.sampled_from([math.nan, math.inf, -math.inf])
ROWS = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), max_size=60).map(
    lambda rows: [{"step": float(3 * n), **row} for n, row in enumerate(rows)]
)


@given(ROWS, st.data())
def test_rows_come_back_whole_or_in_pieces(rows: list[Row], data: st.DataObject) -> None:
    whole, pieces = CurveTable(), CurveTable()
    for row in rows:
        whole.append(row)
    live = CurveTable()
    for row in rows:
        live.append(row)
        if data.draw(st.booleans()):
            pieces.extend(live.take())
    pieces.extend(live.take())
    assert as_text(whole.rows()) == as_text(rows)
    assert as_text(pieces.rows()) == as_text(rows)


def as_text(rows: Iterable[Row]) -> list[str]:
    """Rows by text, since NaN equals nothing; in which order a row names its columns is no matter."""
    return [repr(sorted(row.items())) for row in rows]


def thinned(rows: list[Row], most: int, total: float) -> list[Point]:
    thinner = Thinner(most)
    points = [point for row in rows for point in thinner.take(row, row["step"] / total)]
    return points + thinner.last()


def by_key(points: list[Point]) -> dict[str, list[tuple[int, float]]]:
    curves: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for key, step, value in points:
        curves[key].append((step, value))
    return curves


# The budget may lie before the last row (an overshoot, progress > 1) or behind it (a run that was cut short).
TOTAL = st.floats(1, 400)


@given(ROWS, st.integers(3, 12), TOTAL)
def test_a_thinned_curve_is_short_and_keeps_its_ends(rows: list[Row], most: int, total: float) -> None:
    curves = by_key(thinned(rows, most, total))
    for key in KEYS:
        full = [(int(row["step"]), row[key]) for row in rows if key in row and math.isfinite(row[key])]
        if "/" not in key or not full:
            assert key not in curves
            continue
        kept = curves[key]
        assert len(kept) <= most
        assert kept[0] == full[0]
        assert kept[-1] == full[-1]
        assert len({step for step, _ in kept}) == len(kept)
        assert set(kept) <= set(full)
        assert kept == sorted(kept, key=lambda point: point[0])


@given(ROWS, st.integers(3, 12), TOTAL, st.data())
def test_live_and_replayed_rows_give_the_same_points(
    rows: list[Row], most: int, total: float, data: st.DataObject
) -> None:
    live, table, thinner = CurveTable(), CurveTable(), Thinner(most)
    points: list[Point] = []
    for row in rows:
        live.append(row)
        if data.draw(st.booleans()):
            columns = live.take()
            table.extend(columns)
            points += [p for r in rows_of(columns) for p in thinner.take(r, r["step"] / total)]
    columns = live.take()
    table.extend(columns)
    points += [p for r in rows_of(columns) for p in thinner.take(r, r["step"] / total)]
    assert sorted(points + thinner.last()) == sorted(thinned(list(table.rows()), most, total))


@given(st.integers(3, 50), st.integers(200, 400))
def test_points_are_spread_over_the_whole_run(most: int, steps: int) -> None:
    rows = [{"step": float(n), "loss/g": 0.0} for n in range(steps)]
    kept = [step for _, step, _ in thinned(rows, most, steps)]
    assert len(kept) == most - 1  # one a tick, and the last one
    widest = max(later - sooner for sooner, later in pairwise(kept))
    assert widest <= math.ceil(steps / (most - 2))


def test_a_key_that_comes_late_begins_with_its_first_point() -> None:
    rows: list[Row] = [{"step": float(n), "loss/g": 1.0} for n in range(90)]
    rows += [{"step": float(n), "loss/g": 1.0, "quality/recall": float(n)} for n in range(90, 100)]
    recall = by_key(thinned(rows, 10, 100))["quality/recall"]
    assert recall[0] == (90, 90.0)
    assert recall[-1] == (99, 99.0)


def test_a_short_curve_is_kept_whole() -> None:
    rows: list[Row] = [{"step": float(n), "loss/g": float(n)} for n in (10, 50, 90)]
    assert thinned(rows, 200, 100) == [("loss/g", 10, 10.0), ("loss/g", 50, 50.0), ("loss/g", 90, 90.0)]


def test_the_last_point_is_given_once() -> None:
    thinner = Thinner(3)
    assert thinner.take({"step": 1, "loss/g": 1.0}, 0.0) == [("loss/g", 1, 1.0)]
    assert thinner.last() == []
    assert thinner.take({"step": 2, "loss/g": 2.0}, 0.1) == []
    assert thinner.last() == [("loss/g", 2, 2.0)]
    assert thinner.last() == []


def test_fewer_than_three_points_are_no_curve() -> None:
    with pytest.raises(ValueError, match="at least 3 points make a curve, got 2"):
        Thinner(2)
