"""A user's own files: found, and hashed with the files beside them that they import."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from ganbench.errors import UserCodeError
from ganbench.spec.place import Foreign, role_of

F = TypeVar("F", bound=Foreign)


def with_sources(spec: F, beside: Path, part: str) -> F:
    """The spec with its files by absolute path and with what they hold. Relative ones are sought from the working
    directory, then in the folder `beside` the experiment file.

    Raises:
        UserCodeError: there is no such file.
    """
    places, files = {}, []
    for field, place in spec.places().items():
        places[field] = settled(place, beside, role_of(part, field))
        where = places[field].rpartition(":")[0]
        if where.endswith(".py"):
            files.append(Path(where))
    return spec.settled(places, hashes_of(files))


def settled(place: str, beside: Path, role: str) -> str:
    """A place with its file by absolute path; what is no file stays as it is.

    Raises:
        UserCodeError: there is no such file.
    """
    where, colon, name = place.rpartition(":")
    if not where.endswith(".py"):
        return place
    found = next((path for path in (Path(where).expanduser(), beside / where) if path.is_file()), None)
    if found is None:
        raise UserCodeError(f"{role}: no file '{where}' here or beside the experiment in '{beside}'")
    return f"{found.resolve()}{colon}{name}"


def hashes_of(files: list[Path]) -> Mapping[str, str]:
    """File name -> SHA-256, of files and of what they import from their own folders. Two files of one name are told
    apart by their order."""
    hashes: dict[str, str] = {}
    seen: set[Path] = set()
    for path in (found for file in files for found in (file, *_imported(file))):
        if path in seen:
            continue
        seen.add(path)
        name, n = path.name, 2
        while name in hashes:
            name, n = f"{path.name} ({n})", n + 1
        hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def _imported(file: Path) -> Iterator[Path]:
    """Files below a file's folder that it imports, those that they import included; sorted by path."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        for path in _neighbours(waiting.pop(), file.parent):
            if path not in found and path != file:
                found.add(path)
                waiting.append(path)
    yield from sorted(found)


def _neighbours(file: Path, folder: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return  # loading it tells what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = "." * node.level
            names = [f"{above}{node.module or ''}"]
            names += [f"{names[0]}.{alias.name}" if node.module else f"{above}{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield from _files_of(name, file, folder)


def _files_of(name: str, file: Path, folder: Path) -> Iterator[Path]:
    """`models.dcgan` -> models/__init__.py and models/dcgan.py, where they are there."""
    plain = name.lstrip(".")
    level = len(name) - len(plain)
    base = file.parents[level - 1] if 0 < level <= len(file.parents) else folder
    parts = [part for part in plain.split(".") if part]
    for depth in range(1, len(parts) + 1):
        path = base.joinpath(*parts[:depth])
        for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if candidate.is_file():
                yield candidate.resolve()
