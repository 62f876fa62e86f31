"""Which files lie beside a stranger's file, and how it imports them.

While a file loads, its folder is the first place that modules come from, as if it were run as a script. After that the
folder is the last place, for imports inside functions; `sys.path` is as before. Modules from one folder are kept
apart from equally named ones of another: each file that is loaded sees its own. One limit: an import *inside a
function*, of a name that two loaded folders both have, gives the module of the folder that was loaded last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# Never replaced by a neighbouring file of that name: two of them in one process do not live together.
_KEPT = frozenset(sys.stdlib_module_names) | {"ganbench", "torch", "torchvision", "numpy", "scipy", "PIL", "pandas"}


class _Finder:
    """Finds top-level modules in the folders of files that were loaded, the last one first."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        # Relative entries that a file puts into `sys.path` are meant from its own folder.
        self.base: Path | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib asks for it."""
        if path is not None:
            return None
        return PathFinder.find_spec(name, [*self.relative(), *reversed(self.folders)], target)

    def relative(self) -> list[str]:
        """Relative entries of `sys.path`, from the folder of the file that is being loaded."""
        if self.base is None:
            return []
        return [str((self.base / entry).resolve()) for entry in sys.path if not Path(entry).is_absolute()]


_FINDER = _Finder()
# Folder → its modules, by name, as they were imported for its files.
_MODULES: dict[str, dict[str, ModuleType]] = {}


def neighbours(folder: Path) -> frozenset[str]:
    """Names of the top-level modules and packages in a folder."""
    found = {path.stem for path in folder.glob("*.py")}
    return frozenset(found | {path.parent.name for path in folder.glob("*/*.py")})


@contextmanager
def importable(folder: Path, *further: Path) -> Iterator[None]:
    """Inside, modules come from `folder` first, then from `further`; see the head of this file for after."""
    places = [str(folder), *map(str, further)]
    names = neighbours(folder).union(*map(neighbours, further)) - _KEPT
    displaced = _take(names, places)
    known = set(sys.modules)
    for place in places:
        sys.modules.update(_MODULES.get(place, {}))
    before = list(sys.path)
    sys.path[:0] = places
    outer, _FINDER.base = _FINDER.base, folder
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    try:
        yield
    finally:
        added = [str((folder / entry).resolve()) for entry in sys.path if entry not in before and entry not in places]
        sys.path[:] = before
        _FINDER.base = outer
        for place in (*reversed(added), *reversed(places)):
            if place in _FINDER.folders:
                _FINDER.folders.remove(place)
            _FINDER.folders.append(place)
        _remember((*places, *added), set(sys.modules) - known, displaced)


@contextmanager
def in_reach() -> Iterator[None]:
    """Inside, relative entries of `sys.path` lead where they lead now, also from another working folder."""
    outer, _FINDER.base = _FINDER.base, Path.cwd()
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    try:
        yield
    finally:
        _FINDER.base = outer


def _take(names: frozenset[str], places: Sequence[str]) -> dict[str, ModuleType]:
    """Remove modules of these names, and what lies under them, from `sys.modules`; not those from `places`."""
    tops = {name for name in names if name in sys.modules and _place_of(sys.modules[name], name, places) is None}
    taken = [name for name in sys.modules if name.partition(".")[0] in tops]
    return {name: sys.modules.pop(name) for name in taken}


def _remember(places: tuple[str, ...], fresh: set[str], displaced: dict[str, ModuleType]) -> None:
    foreign = {id(module) for modules in _MODULES.values() for module in modules.values()}
    for name in fresh:
        module = sys.modules.get(name)
        place = _place_of(module, name, places) if module is not None else None
        if module is not None and place is not None:
            _MODULES.setdefault(place, {})[name] = module
    for name, module in displaced.items():
        # Another folder's module stays out; one of the process itself comes back.
        if id(module) not in foreign:
            sys.modules[name] = module
        else:
            sys.modules.setdefault(name, module)


def _place_of(module: ModuleType, name: str, places: Sequence[str]) -> str | None:
    files = [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", ()))]
    depth = name.count(".")
    for file in files:
        for place in places:
            inside = Path(file).is_relative_to(place) and file
            if inside and len(Path(file).relative_to(place).parts) <= depth + 2:
                return place
    return None
