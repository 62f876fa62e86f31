"""The table of measured findings in tests/README.md names findings and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in (HERE / "README.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| subject")
]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_each_subject_is_covered_somewhere() -> None:
    assert len(ROWS) == len({row[0] for row in ROWS}) == 18
    assert not [row[0] for row in ROWS if len(row) != 5 or not any(row[1:])]
    assert not [row[0] for row in ROWS if not row[4]], "each has at least one test of ganbench's own"


def test_findings_are_those_of_the_checks() -> None:
    sources = "\n".join(path.read_text() for path in (HERE.parent / "ganbench" / "gan" / "check").glob("*.py"))
    # Some codes are put together: f"{role}-raises", f"{name}-into-logits".
    known = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', sources)) | {
        f"{role}{end}"
        for end in re.findall(r'f"\{\w+\}(-[a-z-]+)"', sources)
        for role in ("generator", "discriminator", "sigmoid", "tanh")
    }
    assert len(known) > 30
    assert not [(row[0], code) for row in ROWS for code in quoted(row[2]) if code not in known]


def test_tests_are_there() -> None:
    missing = []
    for row in ROWS:
        for place in quoted(row[4]):
            file, _, name = place.partition("::")
            path = HERE / file
            if not path.is_file() or not re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE):
                missing.append(place)
    assert not missing
