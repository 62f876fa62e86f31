"""Curves: one row an update, a column a counter or a curve, nothing thinned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Columns = dict[str, list[float | None]]


@dataclass
class CurveTable:
    """Rows of numbers by column name. `step` is the number of optimizer updates done so far (g + d)."""

    columns: Columns = field(default_factory=lambda: {"step": []})

    def __len__(self) -> int:
        return len(self.columns["step"])

    def append(self, row: Mapping[str, float | None]) -> None:
        """Add one row; columns that it lacks get None, new ones are filled up with None."""
        before = len(self)
        for name in row:
            if name not in self.columns:
                self.columns[name] = [None] * before
        for name, values in self.columns.items():
            values.append(row.get(name))

    def extend(self, columns: Columns) -> None:
        """Add the rows of other columns."""
        for row in rows_of(columns):
            self.append(row)

    def take(self) -> Columns:
        """Hand the rows over and start anew."""
        taken, self.columns = self.columns, {"step": []}
        return taken

    def rows(self) -> Iterator[dict[str, float]]:
        """Each row without its gaps."""
        return rows_of(self.columns)


def rows_of(columns: Columns) -> Iterator[dict[str, float]]:
    """Each row of the columns as a mapping without its gaps."""
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


class Thinner:
    """Chooses at most `most` points of each curve, evenly over the run's progress, as the rows come.

    The first point is always taken, and `last()` gives the last one. The choice depends on the rows alone: the same
    rows give the same points, live or replayed. A value that is not finite is never taken.
    """

    def __init__(self, most: int = 200) -> None:
        if most < 3:
            raise ValueError(f"at least 3 points make a curve, got {most}")
        self._ticks = most - 2
        self._tick: dict[str, int] = {}
        self._held: dict[str, tuple[int, float]] = {}

    def take(self, row: Mapping[str, float], progress: float) -> list[tuple[str, int, float]]:
        """The points (key, step, value) of this row that are kept; `progress` is 0 at the start, 1 at the budget."""
        step = int(row["step"])
        # A whole tick must not be lost to rounding, such as 7/315 × 45.
        tick = min(self._ticks - 1, int(progress * self._ticks + 1e-9))
        points = []
        for key, value in row.items():
            if "/" not in key or not math.isfinite(value):
                continue
            if tick > self._tick.get(key, -1):
                self._tick[key] = tick
                self._held.pop(key, None)
                points.append((key, step, value))
            else:
                self._held[key] = (step, value)
        return points

    def last(self) -> list[tuple[str, int, float]]:
        """The last point of each curve, where it was not taken yet."""
        points = [(key, step, value) for key, (step, value) in self._held.items()]
        self._held.clear()
        return points
