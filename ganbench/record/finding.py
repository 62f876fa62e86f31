"""What looking networks, data and loss over before any run found: one thing that is wrong or worth knowing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

# error: this cannot run. warning: it runs, and hardly does what was meant. note: worth knowing.
Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        code: its stable kebab-case name, such as `sigmoid-into-logits`.
        severity: `error` only for what cannot run.
        what: what is the case, in one sentence.
        evidence: what was seen: figures, names of layers, an error's message.
        advice: what to do about it.
    """

    code: str
    severity: Severity
    what: str
    evidence: str
    advice: str

    def plain(self) -> dict[str, Any]:
        """The finding as JSON's own types."""
        return asdict(self)


@dataclass(frozen=True)
class Looked:
    """What came of looking one combination of networks, data and loss over.

    Attributes:
        findings: errors first, then warnings, then notes.
        made: how many checks were made.
        left_out: names of checks that make no sense while what was found stands.
    """

    findings: tuple[Finding, ...]
    made: int
    left_out: tuple[str, ...] = ()

    @property
    def can_run(self) -> bool:
        """True where no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def with_finding(self, finding: Finding) -> Looked:
        """The same with one finding more, of a further check."""
        return Looked(by_severity([*self.findings, finding]), self.made + 1, self.left_out)

    def plain(self) -> dict[str, Any]:
        """All of it as JSON's own types."""
        findings = [finding.plain() for finding in self.findings]
        return {"can_run": self.can_run, "checks": self.made, "left_out": list(self.left_out), "findings": findings}


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, then warnings, then notes, each once; within a severity in the order given."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity)))
