"""What the benchmarks share: interleaved pairs, their ratio, a table, and the machine it was made on."""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ganbench.report.statistics import Ratio, paired_ratio


@dataclass(frozen=True)
class Row:
    """One comparison: the ratio of the first to the second, and the bound it is held against, where there is one."""

    name: str
    ratio: Ratio
    limit: str
    first_s: float
    second_s: float

    def text(self) -> str:
        """A line of the table."""
        spread = (
            f"[{self.ratio.low:.3f}, {self.ratio.high:.3f}]" if self.ratio.low is not None else f"({self.ratio.kind})"
        )
        return (
            f"| {self.name} | {self.ratio.estimate:.3f} {spread} | {self.limit} | {self.ratio.n} | "
            f"{self.first_s:.3f} / {self.second_s:.3f} |"
        )


def wall(work: Callable[[], object]) -> float:
    """Seconds of wall time that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(
    name: str, first: Callable[[], float], second: Callable[[], float], pairs: int, limit: str = "-"
) -> Row:
    """Both sides `pairs` times, in random order within each pair; each call gives its own figure (seconds)."""
    shuffle = random.Random(name)
    found: tuple[list[float], list[float]] = ([], [])
    sides = [(0, first), (1, second)]
    for _ in range(pairs):
        shuffle.shuffle(sides)
        for side, work in sides:
            found[side].append(work())
    ratio = paired_ratio(found[0], found[1], np.random.default_rng(0))
    return Row(name, ratio, limit, float(np.median(found[0])), float(np.median(found[1])))


def arguments(description: str) -> argparse.Namespace:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(
        prog=" ".join(["python -m benchmarks", *sys.argv[:1]]), description=description.strip().splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures mean nothing")
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    return parser.parse_args()


def report(title: str, sides: str, rows: list[Row], options: argparse.Namespace) -> None:
    """Print the table with the machine it was made on."""
    print(f"\n### {title}\n\n{machine()}{' QUICK: figures mean nothing.' if options.quick else ''}\n")
    print(f"| {sides} | ratio, 95 % interval | limit | pairs | median s of each |\n|---|---|---|---|---|")
    for row in rows:
        print(row.text())
    if options.json:
        plain = [{**asdict(row), "machine": machine()} for row in rows]
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    sys.stdout.flush()


def machine() -> str:
    """Date, processor, cores and versions in a line."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    import os

    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "mlflow"))
    return (
        f"{time.strftime('%Y-%m-%d')}, {cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}."
    )
