"""How many generator updates are made for how many discriminator updates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_TEXT = re.compile(r"\s*([0-9]{1,6})\s*:\s*([0-9]{1,6})\s*", re.ASCII)


@dataclass(frozen=True, order=True, slots=True)
class UpdateRatio:
    """`g:d`: g generator updates and d discriminator updates make one round.

    Never reduced: `2:2` is another schedule than `1:1`.
    """

    g: int
    d: int

    def __post_init__(self) -> None:
        if self.g < 1 or self.d < 1:
            raise ValueError(
                f"both sides of a ratio must be at least 1, got '{self.g}:{self.d}'; "
                "write g:d, such as 5:1 for five generator updates, then one discriminator update"
            )

    @classmethod
    def parse(cls, text: object) -> UpdateRatio:
        """Read `g:d`.

        Raises:
            ValueError: the text is no ratio; the message says what was given and how to write one.
        """
        if isinstance(text, UpdateRatio):
            return text
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(
                f"a ratio is g:d with two whole numbers, got '{text}'; "
                "write 5:1 for five generator updates, then one discriminator update"
            )
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.g}:{self.d}"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.parse, serialization=core_schema.to_string_ser_schema())
