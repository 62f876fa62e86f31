"""What live storages are for, and the picture of all of them at a peak."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The first that applies counts: what was registered under a kind stays it."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER_STATE = "optimizer_state"
    SAVED = "saved_for_backward"
    OTHER = "other"


class LiveStorage:
    """A storage while it lives.

    Attributes:
        size: bytes it counts for.
        kind: what it was registered as or became; None: whatever holds it.
        saves: for each time an autograd graph holds it now, the position (number of marks) at which it was saved.
    """

    __slots__ = ("kind", "saves", "size")

    def __init__(self) -> None:
        self.size = 0
        self.kind: Kind | None = None
        self.saves: list[int] = []


@dataclass(frozen=True, slots=True)
class _Seen:
    storage: LiveStorage
    size: int
    saved_at: int | None


class Moment:
    """All that lived at one moment.

    Sizes and what the graphs held are those of the moment. The kind is read later: at the moment of a peak a gradient
    has often been computed already and lies in `.grad` one operator later.
    """

    def __init__(self, position: int, storages: Iterable[LiveStorage]) -> None:
        self.position = position
        self._seen = [_Seen(s, s.size, min(s.saves) if s.saves else None) for s in storages]

    def split(self) -> dict[str, int]:
        """Bytes for each kind; they add up to what lived."""
        bytes_of = {str(kind): 0 for kind in Kind}
        for seen in self._seen:
            bytes_of[_kind(seen)] += seen.size
        return bytes_of

    def saved_before(self, position: int) -> int:
        """Bytes of `saved_for_backward` that were saved at an earlier position and held since."""
        return sum(
            seen.size
            for seen in self._seen
            if seen.saved_at is not None and seen.saved_at < position and _kind(seen) is Kind.SAVED
        )


def _kind(seen: _Seen) -> Kind:
    return seen.storage.kind or (Kind.OTHER if seen.saved_at is None else Kind.SAVED)
