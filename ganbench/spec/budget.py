"""What is held equal between arms, and how far a run has come in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from ganbench.spec.value import unknown

UNITS = ("rounds", "g_updates", "d_updates", "updates", "real_images", "seconds")
_TEXT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s+([A-Za-z_]+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of one of `UNITS`, such as `2000 updates`. Only seconds may be a fraction."""

    amount: float
    unit: str

    @classmethod
    def parse(cls, text: object) -> Budget:
        """Read `AMOUNT UNIT`.

        Raises:
            ValueError: the text is no budget; the message says what was given and how to write one.
        """
        if isinstance(text, Budget):
            return text
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"a budget is an amount and a unit, got '{text}'; write it like '2000 updates'")
        amount, unit = float(match[1].replace("_", "")), match[2]
        if unit not in UNITS:
            raise ValueError(unknown("budget unit", unit, UNITS))
        if amount <= 0 or amount > 1e15 or (unit != "seconds" and amount != int(amount)):
            allowed = "number above 0 and" if unit == "seconds" else "whole number from 1"
            raise ValueError(f"a budget in {unit} must be a {allowed} up to 1e15, got '{text}'")
        return cls(amount, unit)

    def __str__(self) -> str:
        amount = int(self.amount) if self.amount == int(self.amount) else self.amount
        return f"{amount} {self.unit}"

    def spent(self, counters: Mapping[str, float]) -> float:
        """How much of the budget's unit the counters show."""
        if self.unit == "updates":
            return counters["g_updates"] + counters["d_updates"]
        return counters[self.unit]

    def met(self, counters: Mapping[str, float]) -> bool:
        """True once the amount is reached or passed."""
        return self.spent(counters) >= self.amount

    def progress(self, counters: Mapping[str, float]) -> float:
        """The share spent: 0 at the start, 1 when met, more on overshoot."""
        return self.spent(counters) / self.amount

    def part(self, count: int) -> Budget:
        """The `count`-th part of this budget, at least one whole unit (seconds may be a fraction)."""
        share = self.amount / count
        return Budget(share if self.unit == "seconds" else float(max(1, int(share))), self.unit)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.parse, serialization=core_schema.to_string_ser_schema())
