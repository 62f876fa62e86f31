"""`python -m benchmarks NAME`: run one of them; without a name, list them.

A process that a benchmark starts does not import this file's module anew, as it would a benchmark's own: what it loads
beside ganbench would be measured.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

NAMES = ("overhead", "startup", "tracking", "sweep", "strategies")


def main() -> None:
    given = sys.argv[1:]
    if given and given[0] in NAMES:
        sys.argv = given
        importlib.import_module(f"benchmarks.{given[0]}").main()
        return
    if given and given[0] not in ("-h", "--help"):
        sys.exit(f"error: no benchmark '{given[0]}': known are {', '.join(NAMES)}")
    print("python -m benchmarks NAME [--quick] [--json FILE]\n")
    for name in NAMES:
        text = ast.get_docstring(ast.parse((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8"))) or ""
        print(f"  {name:11} {text.splitlines()[0]}")


if __name__ == "__main__":
    main()
