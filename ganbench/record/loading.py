"""How a stranger's file was loaded: what of it was run, and what it did meanwhile. Plain values."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Statement(BaseModel):
    """A statement of a file: its first line, and the text there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line: int
    text: str


class Loaded(BaseModel):
    """What loading a file did.

    Attributes:
        file: its path as it was written, or the package.module.
        argv: its command line.
        whole: every statement was run, for it only defines; else those that the names asked for need.
        statements_run: these, in order; what stands under a condition ran where the condition held.
        stopped_at: line of the first statement behind the last one that was run; None where there is none.
        not_run: first and last lines of the stretches that were not run.
        prints: what it printed, the first kilobytes.
        wrote: files (path from its working folder → bytes) and empty folders (path with `/` → 0); all removed again.
        switches: global switches that it set (name → value before, value that it set), all put back.
        seconds: how long it took, imports included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    argv: tuple[str, ...] = ()
    whole: bool = True
    statements_run: tuple[Statement, ...] = ()
    stopped_at: int | None = None
    not_run: tuple[tuple[int, int], ...] = ()
    prints: str = ""
    wrote: dict[str, int] = Field(default_factory=dict)
    switches: dict[str, tuple[str, str]] = Field(default_factory=dict)
    seconds: float = 0.0

    def summary(self) -> str:
        """One line: `gan.py: 21 statements run, stopped at line 88; not run: lines 12, 90–140`."""
        if self.whole:
            return f"{self.file}: loaded whole"
        stretches = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in self.not_run)
        stop = f", stopped at line {self.stopped_at}" if self.stopped_at else ""
        lines = f"; not run: lines {stretches}" if stretches else ""
        return f"{self.file}: {len(self.statements_run)} statements run{stop}{lines}"
