"""What the package says that it offers is there."""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path

import pytest

import ganbench

ROOT = Path(ganbench.__file__).parent
LISTING = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if "__all__ =" in path.read_text()
]


@pytest.mark.parametrize("name", LISTING)
def test_every_name_that_is_exported_exists(name: str) -> None:
    module = importlib.import_module(name)
    assert [export for export in module.__all__ if not hasattr(module, export)] == []
    assert len(module.__all__) == len(set(module.__all__))


def test_the_installed_version_is_the_packages() -> None:
    assert metadata.version("ganbench") == ganbench.__version__


def test_the_command_is_the_command_lines_main() -> None:
    (script,) = metadata.entry_points(group="console_scripts", name="ganbench")
    assert script.value == "ganbench.cli:main"
    assert callable(script.load())


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()
