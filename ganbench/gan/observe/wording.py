"""Lines of the user's file, in words."""

from __future__ import annotations

from collections.abc import Iterable

from ganbench.gan.observe.timeline import Call, Timeline
from ganbench.record.loop import NETWORKS


def at_lines(lines: Iterable[int | None]) -> str:
    """` at lines 3, 8`; nothing where none is known."""
    known = sorted({line for line in lines if line is not None})
    return f" at line{'s' if len(known) > 1 else ''} {', '.join(map(str, known))}" if known else ""


def changed_since(seen: Timeline, calls: list[Call]) -> str:
    """Forward passes whose weights were changed, and where they were."""
    parts: dict[str, None] = {}
    for call in calls:
        changed = seen.changes.get((call.network, call.epoch + 1))
        part = f"the {NETWORKS[call.network]}'s forward pass{at_lines([call.line])}, whose weights were changed since"
        parts[part + at_lines([changed])] = None
    return " and ".join(list(parts)[:3])


def length(sizes: list[float]) -> str:
    """`0.4 to 1.2`."""
    low, high = f"{min(sizes):.2g}", f"{max(sizes):.2g}"
    return low if low == high else f"{low} to {high}"
