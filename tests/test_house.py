"""The shape of the house (DESIGN 9): who imports whom, what importing costs, and what no file may hold."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ganbench"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# The fork server's preload: it may name what every run needs, whatever the floor.
PRELOAD = "ganbench.execute.warm"

FLOORS = (
    {"errors"},
    {"spec"},
    {"record"},
    {"gan", "measure", "quality"},
    {"execute", "track", "report"},
    {"sweep", "search", "verify"},
    {"cli"},
)
FLOOR_OF = {part: number for number, parts in enumerate(FLOORS) for part in parts}
TORCH_FLOOR = FLOORS[3]


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


class _Imports(ast.NodeVisitor):
    """Imports of this package: (module, line, whether it happens when the importing module is imported)."""

    def __init__(self, module: str, is_package: bool) -> None:
        self.found: list[tuple[str, int, bool]] = []
        self._base = module if is_package else module.rpartition(".")[0]
        self._at_import = True

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = node.module or ""
        if node.level:
            above = self._base.split(".")
            source = ".".join([*above[: len(above) - node.level + 1], *([source] if source else [])])
        for alias in node.names:
            whole = f"{source}.{alias.name}"
            self._add(whole if whole in MODULES else source, node.lineno)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._later(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._later(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            before, self._at_import = self._at_import, False
            for child in node.body:
                self.visit(child)
            self._at_import = before
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)

    def _later(self, node: ast.AST) -> None:
        before, self._at_import = self._at_import, False
        self.generic_visit(node)
        self._at_import = before

    def _add(self, name: str, line: int) -> None:
        if name == "ganbench" or name.startswith("ganbench."):
            self.found.append((name, line, self._at_import))


def imports_of(module: str) -> list[tuple[str, int, bool]]:
    path = MODULES[module]
    visitor = _Imports(module, path.name == "__init__.py")
    visitor.visit(ast.parse(path.read_text()))
    return visitor.found


def edges() -> Iterator[tuple[str, str, int, bool]]:
    for module in MODULES:
        for imported, line, at_import in imports_of(module):
            yield module, imported, line, at_import


def wrong_edges(seen: Iterator[tuple[str, str, int, bool]] | list[tuple[str, str, int, bool]]) -> list[str]:
    wrong = []
    for module, imported, line, at_import in seen:
        importer, target = part_of(module), part_of(imported)
        if module == PRELOAD or importer == target or not target:
            continue
        where = f"{module}:{line} imports {imported}"
        if FLOOR_OF[target] > FLOOR_OF[importer]:
            wrong.append(f"{where}, which lies above it")
        elif FLOOR_OF[target] == FLOOR_OF[importer] and {importer, target} != {"sweep", "search"}:
            wrong.append(f"{where}, a neighbour on its floor")
        elif importer not in TORCH_FLOOR and target in TORCH_FLOOR and at_import:
            wrong.append(f"{where} when it is imported; torch would be loaded with it")
    return wrong


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            found.append([*path[path.index(module) :], module])
        elif module not in done:
            for imported in sorted(graph.get(module, ())):
                walk(imported, [*path, module])
            done.add(module)

    for module in sorted(graph):
        walk(module, [])
    return found


def test_every_module_lies_on_a_floor() -> None:
    parts = {part_of(module) for module in MODULES} - {""}
    assert parts <= set(FLOOR_OF), "a new package needs a floor in DESIGN 9 and here"


def test_imports_go_down_only() -> None:
    assert len(list(edges())) > 100  # the parser does find the package's imports
    assert not wrong_edges(edges())


@pytest.mark.parametrize(
    ("edge", "word"),
    [
        (("ganbench.spec.run", "ganbench.record.events", 1, True), "above"),
        (("ganbench.gan.trainer", "ganbench.measure", 1, False), "neighbour"),
        (("ganbench.track.store", "ganbench.execute.work", 1, False), "neighbour"),
        (("ganbench.execute.work", "ganbench.gan.pair", 1, True), "torch"),
        (("ganbench.sweep", "ganbench.cli", 1, False), "above"),
    ],
)
def test_a_wrong_import_would_be_seen(edge: tuple[str, str, int, bool], word: str) -> None:
    assert word in wrong_edges([edge])[0]


def test_only_the_preload_is_excepted() -> None:
    beside = [edge for edge in edges() if edge[0] == PRELOAD]
    assert {part_of(imported) for _, imported, _, _ in beside} <= TORCH_FLOOR | {"cli", "execute", "errors"}
    assert not any(imported == PRELOAD for _, imported, _, _ in edges()), "the preload is for the fork server alone"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, imported, _, at_import in edges():
        # Importing a submodule of one's own package is how a package is put together.
        if at_import and module != PRELOAD and imported != module:
            graph[module].add(imported)
    assert not circles(graph)
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c", "a"]]


_LOAD = """
import importlib, json, sys
loaded = {}
for name in sys.argv[1].split(","):
    importlib.import_module(name)
    loaded[name] = [heavy for heavy in ("torch", "mlflow", "pandas") if heavy in sys.modules]
print(json.dumps(loaded))
"""


def loaded_after(names: list[str]) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, ",".join(names)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


def test_plain_values_load_neither_torch_nor_mlflow_nor_pandas() -> None:
    plain = [module for module in MODULES if part_of(module) in ("", "errors", "spec", "record")]
    loaded = loaded_after(plain)
    assert len(loaded) > 20
    assert not {name: heavy for name, heavy in loaded.items() if heavy}


def test_nothing_outside_the_torch_floor_loads_torch() -> None:
    outside = [m for m in MODULES if part_of(m) not in TORCH_FLOOR and m != PRELOAD and not m.endswith("__main__")]
    loaded = loaded_after(outside)
    assert not [name for name, heavy in loaded.items() if "torch" in heavy]


def test_the_torch_floor_would_be_noticed() -> None:
    assert "torch" in loaded_after(["ganbench.gan.pair"])["ganbench.gan.pair"]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["sweep", "--help"], ["plan", "-h"], ["report", "--help"], ["list", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom ganbench.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\nelse:\n    code = 0\n"
        "heavy = [n for n in ('torch', 'mlflow', 'pandas', 'numpy', 'scipy') if n in sys.modules]\n"
        "print('heavy:', heavy, 'code:', code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] in ("heavy: [] code: 0", "heavy: [] code: None")


def test_no_module_is_called_utils_or_helpers() -> None:
    assert not [m for m in MODULES if re.search(r"(^|[._])(utils?|helpers?|misc|common)($|[._])", m)]


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES.values()}
    assert not {path: lines for path, lines in lengths.items() if lines > 300}


def tracked_files() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [path for name in done.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def test_no_tracked_file_names_a_path_of_this_machine() -> None:
    # The paths are put together here, so that this file does not hold them itself.
    places = {str(ROOT), str(Path.home()), str(Path(sys.prefix))} - {"/", "/root"}
    places |= {"/" + "work/", "/" + "home/"}
    holding = {
        f"{path.relative_to(ROOT)}: {place}"
        for path in tracked_files()
        for place in places
        if place.encode() in path.read_bytes()
    }
    assert not holding


def test_no_tracked_file_names_a_package_registry() -> None:
    host = re.compile(rb"(--index-url|--extra-index-url|index-url\s*=|find-links|\bpypi\.|/simple/|artifactory|nexus)")
    own = Path(__file__).resolve()
    holding = [
        str(path.relative_to(ROOT)) for path in tracked_files() if path != own and host.search(path.read_bytes())
    ]
    assert not holding
