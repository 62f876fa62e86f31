"""A stranger's file as a module: a module that only defines is run whole, a training script as far as what is asked for
needs (`slicing` has the rules). Each file and command line is one module of the process."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.folders import importable, neighbours
from ganbench.gan.foreign.parts import Parts, is_plain, parts_of
from ganbench.gan.foreign.scratch import Left, scratch
from ganbench.gan.foreign.slicing import OutOfReach, Slice
from ganbench.gan.foreign.switches import watched
from ganbench.gan.foreign.telling import told
from ganbench.record.loading import Loaded, Statement


@dataclass
class _Held:
    source: str
    module: ModuleType
    record: Loaded
    wanted: frozenset[str] = frozenset()
    run: set[int] = field(default_factory=set)


_HELD: dict[tuple[str, tuple[str, ...]], _Held] = {}


@dataclass(frozen=True)
class _File:
    """A file that is to be loaded, as a user named it."""

    where: str
    path: Path
    role: str
    argv: tuple[str, ...]

    @property
    def module_name(self) -> str:
        """The same in every process, and another for each file and command line."""
        digest = hashlib.sha256("\0".join((str(self.path), *self.argv)).encode()).hexdigest()[:8]
        return f"ganbench_user_{re.sub(r'[^0-9A-Za-z_]', '_', self.path.stem)}_{digest}"


def defined(where: str) -> list[str]:
    """Names of the classes and functions that a file defines, those inside conditions too; none where it is broken."""
    try:
        tree = ast.parse(Path(where).read_bytes())
    except (SyntaxError, ValueError, OSError):
        return []
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [part.node.name for part in parts_of(tree).all if isinstance(part.node, kinds)]


def load(where: str, name: str, role: str, argv: Sequence[str] = ()) -> tuple[ModuleType, Loaded]:
    """The module of a file with `name` in it (if the file binds it at all), and how it was loaded.

    A second name of the same file goes into the same module: what it needs besides is run then. Where that would
    give other values than the file's own order, all is run anew, for both names, in a new module.

    Raises:
        UserCodeError: no such file; a syntax error; a statement raises or exits; a needed name is bound only in a
            training loop or under the `__main__` guard.
    """
    path = Path(where).resolve()
    if not path.is_file():
        raise UserCodeError(f"{role}: no file '{where}'")
    file = _File(where, path, role, tuple(map(str, argv)))
    source, parts = _parsed(file)
    key = (str(path), file.argv)
    held = _HELD.get(key)
    if held is not None and held.source != source:
        held = None
    whole = is_plain(parts.tree)
    if held is not None and name in held.wanted:
        return held.module, held.record
    wanted = frozenset({name}) | (held.wanted if held else frozenset())
    needed = _needed(file, parts, wanted)  # for a whole module too: it tells what can never be bound
    if whole:
        needed = {part.number for part in parts.all}
    if held is not None and needed <= held.run:
        held.wanted = wanted
        return held.module, held.record
    if held is not None and not _may_follow(parts, needed - held.run, held.run):
        held = None
    module = held.module if held else _module(file, parts.tree)
    before = held.run if held else set()
    record = _run(file, parts, module, needed - before)
    if held is not None:
        record = _joined(held.record, record)
    run = before | needed
    record = record.model_copy(update={"whole": whole, **_lines(source, parts, run)})
    _HELD[key] = _Held(source, module, record, wanted, run)
    return module, record


def _parsed(file: _File) -> tuple[str, Parts]:
    try:
        raw = file.path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in the author's strings
            tree = ast.parse(raw, str(file.path))
        return raw.decode("utf-8", "replace"), parts_of(tree)
    except (SyntaxError, ValueError, OSError) as error:
        raise UserCodeError(f"{file.role}: loading '{file.where}' raised {told(error, file.where)}") from error


def _needed(file: _File, parts: Parts, wanted: frozenset[str]) -> set[int]:
    try:
        slice_ = Slice(parts, wanted, neighbours(file.path.parent))
    except OutOfReach as out:
        place = {
            "trains": f"the training loop at line {out.bound_at}, which ganbench never runs; set it above the loop",
            "guard": f'line {out.bound_at} under `if __name__ == "__main__":`, which is not run; set it above that',
        }[out.why]
        if out.name in wanted:
            raise UserCodeError(f"{file.role}: '{file.where}' makes '{out.name}' only in {place}") from out
        raise UserCodeError(
            f"{file.role}: '{file.where}' reads '{out.name}' at line {out.read_at} but binds it only in {place}"
        ) from out
    return set(slice_.kept)


def _may_follow(parts: Parts, added: set[int], run: set[int]) -> bool:
    """Whether running `added` after `run` gives what the file's order gives."""
    for one in (parts.all[number] for number in added):
        if one.above and any(head.number in run and not isinstance(head.node, ast.If) for head in one.above):
            return False
        for other in (parts.all[number] for number in run):
            if other.top < one.top:
                continue
            made, other_made = (part.names.binds | part.names.changes for part in (one, other))
            if made & (other_made | other.names.reads) or one.names.reads & other_made:
                return False
    return True


def _module(file: _File, tree: ast.Module) -> ModuleType:
    module = ModuleType(file.module_name, ast.get_docstring(tree, clean=False))
    module.__file__ = str(file.path)
    module.__loader__ = SourceFileLoader(file.module_name, str(file.path))
    module.__package__ = _package(file.path, tree)
    return module


def _package(path: Path, tree: ast.Module) -> str:
    """The package that a file belongs to, for its relative imports; '' for one that stands alone."""
    depth = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    names: list[str] = []
    folder = path.parent
    while folder.name.isidentifier() and (len(names) < depth or (folder / "__init__.py").is_file()):
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names)


def _run(file: _File, parts: Parts, module: ModuleType, numbers: set[int]) -> Loaded:
    name = file.module_name
    earlier = sys.modules.get(name)
    heads = {head.number for number in numbers for head in parts.all[number].above}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(parts.keeping(numbers | heads), str(file.path), "exec", dont_inherit=True)
    folder = file.path.parent
    further = [folder.parents[module.__package__.count(".")]] if module.__package__ else []
    left = Left()
    begin = time.perf_counter()
    try:
        with importable(folder, *further), watched() as switches, scratch([str(file.path), *file.argv]) as left:
            sys.modules[name] = module
            exec(code, module.__dict__)
    except BaseException as error:
        # Half a module left there would be taken for a loaded one next time, and hide the reason.
        if earlier is None or earlier is not module:
            sys.modules.pop(name, None)
        if isinstance(error, Exception | SystemExit):
            raise UserCodeError(_failed(file, error, left)) from error
        raise
    return Loaded(
        file=file.where,
        argv=file.argv,
        prints=left.prints,
        wrote=left.wrote,
        switches=switches,
        seconds=time.perf_counter() - begin,
    )


def _failed(file: _File, error: BaseException, left: Left) -> str:
    if isinstance(error, SystemExit) and error.code == 2 and ": error: " in left.last_line:
        given = f" (argv: [{', '.join(file.argv)}])" if file.argv else ""
        complaint = left.last_line.partition(": error: ")[2]
        line = told(error, file.where).partition(":")[0].removeprefix("SystemExit")
        return (
            f"{file.role}: '{file.where}' could not read its command line{line}{given}: {complaint}; "
            "give its options with argv: [--img_size, 32]"
        )
    hint = ""
    if isinstance(error, FileNotFoundError):
        hint = " (it is loaded in an empty folder, where relative paths lead nowhere)"
    return f"{file.role}: loading '{file.where}' raised {told(error, file.where)}{hint}"


def _joined(first: Loaded, second: Loaded) -> Loaded:
    return first.model_copy(
        update={
            "prints": first.prints + second.prints,
            "wrote": {**first.wrote, **second.wrote},
            "switches": {**first.switches, **second.switches},
            "seconds": first.seconds + second.seconds,
        }
    )


def _lines(source: str, parts: Parts, run: set[int]) -> dict[str, object]:
    text = source.splitlines()
    done = [part for part in parts.all if part.number in run]
    rest = [part for part in parts.all if part.number not in run]
    stretches: list[tuple[int, int]] = []
    for part in rest:
        adjoins = stretches and part.number - 1 not in run
        first = stretches.pop()[0] if adjoins else part.line
        stretches.append((first, part.last_line))
    last = max((part.number for part in done), default=-1)
    return {
        "statements_run": tuple(Statement(line=p.line, text=text[p.line - 1].strip()) for p in done),
        "not_run": tuple(stretches),
        "stopped_at": next((part.line for part in rest if part.number > last), None),
    }
