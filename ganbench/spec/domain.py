"""What one parameter of a search may be: whole numbers, numbers, or one of several values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from ganbench.spec.value import Count, Flag, Value, canonical_json

Primitive: TypeAlias = bool | int | float | str | None
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class Whole(Value):
    """Whole numbers from `low` to `high`, both included, `step` apart; with `log`, small ones are tried as often."""

    kind: Literal["whole"] = "whole"
    low: Annotated[int, Field(strict=True)]
    high: Annotated[int, Field(strict=True)]
    step: Count = 1
    log: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _ends_on_a_step(cls, given: Any) -> Any:
        return _trimmed(given)

    @model_validator(mode="after")
    def _bounds_fit(self) -> Whole:
        _check_bounds(self)
        if self.log and self.step != 1:
            raise ValueError(f"a range has log: true or a step, not both, got step {self.step}")
        return self

    @property
    def size(self) -> int:
        """How many values there are."""
        return (self.high - self.low) // self.step + 1

    def points(self) -> list[Primitive]:
        """Every value, in order."""
        return list(range(self.low, self.high + 1, self.step))


class Real(Value):
    """Numbers from `low` to `high`, both included; finitely many of them where a `step` is given."""

    kind: Literal["real"] = "real"
    low: _Finite
    high: _Finite
    log: Flag = False
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _ends_on_a_step(cls, given: Any) -> Any:
        return _trimmed(given)

    @model_validator(mode="after")
    def _bounds_fit(self) -> Real:
        _check_bounds(self)
        if self.log and self.step is not None:
            raise ValueError(f"a range has log: true or a step, not both, got step {self.step}")
        return self

    @property
    def size(self) -> int | None:
        """How many values there are; None where there is no step between them."""
        if self.low == self.high:
            return 1
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def points(self) -> list[Primitive]:
        """Every value, in order. Raises ValueError where there is no step."""
        if self.low == self.high:
            return [self.low]
        if self.step is None:
            raise ValueError("a range without a step has no list of its values")
        low, step = Decimal(str(self.low)), Decimal(str(self.step))
        return [float(low + n * step) for n in range(round((self.high - self.low) / self.step) + 1)]


class Choices(Value):
    """One of several values. A sampler sees what is not primitive as the text of its JSON."""

    kind: Literal["choices"] = "choices"
    values: tuple[Any, ...]

    @model_validator(mode="after")
    def _different(self) -> Choices:
        if not self.values:
            raise ValueError("choices are a list of at least one value, got an empty list")
        texts = self.points()
        twice = next((value for n, value in enumerate(texts) if value in texts[:n]), None)
        if twice is not None:
            raise ValueError(f"choices must differ, got {twice!r} twice (true and 1 are taken for the same)")
        return self

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    def points(self) -> list[Primitive]:
        """Every value as a sampler sees it, in order."""
        return [value if _is_primitive(value) else canonical_json(value) for value in self.values]

    def value(self, seen: Primitive) -> Any:
        """The value that a sampler sees so."""
        return self.values[self.points().index(seen)]


Domain: TypeAlias = Whole | Real | Choices


def _check_bounds(domain: Whole | Real) -> None:
    if domain.low > domain.high:
        raise ValueError(f"a range goes from its low end to its high end, got {domain.low} and {domain.high}")
    if domain.log and domain.low <= 0:
        raise ValueError(f"a range with log: true begins above 0, got {domain.low}")


def _trimmed(given: Any) -> Any:
    # A range ends on a step. Decimals, because 0.3 is no multiple of 0.1 among binary fractions.
    if not isinstance(given, Mapping) or not given.get("step"):
        return given
    low, high, step = given.get("low"), given.get("high"), given["step"]
    numbers = [n for n in (low, high, step) if isinstance(n, int | float) and math.isfinite(n)]
    if len(numbers) < 3 or numbers[2] <= 0 or numbers[0] > numbers[1]:
        return given  # the fields' own rules tell what is wrong
    low, high, step = (Decimal(str(number)) for number in numbers)
    left = (high - low) % step
    number_type = int if all(isinstance(number, int) for number in numbers) else float
    return {**given, "high": number_type(high - left)} if left else given


def _is_primitive(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
