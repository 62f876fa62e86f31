"""What a file imports from its folder: found while it loads and later, and never mixed up with another folder's."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import loading, named

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return file


def test_equally_named_neighbours_are_kept_apart(write: Write) -> None:
    makers = {}
    for folder in ("one", "two"):
        write(f"{folder}/sizes_here.py", f"WIDTH = '{folder}'\n")
        write(f"{folder}/layers_here/__init__.py", "from .deep import DEPTH\n")
        write(f"{folder}/layers_here/deep.py", f"DEPTH = 'deep in {folder}'\n")
        text = "import sizes_here\nfrom layers_here import DEPTH\ndef make(): return sizes_here.WIDTH, DEPTH\n"
        makers[folder] = named(f"{write(f'{folder}/gan.py', text)}:make", "generator")
    again = named(f"{write('one/other.py', 'from sizes_here import WIDTH')}:WIDTH", "generator")
    assert makers["one"]() == ("one", "deep in one")
    assert makers["two"]() == ("two", "deep in two")
    assert again == "one"


def test_a_neighbour_is_imported_once(write: Write) -> None:
    write("counted_here.py", "class Base: pass\n")
    bases = [
        named(f"{write(name, 'from counted_here import Base as Mine')}:Mine", "generator") for name in ("a.py", "b.py")
    ]
    assert bases[0] is bases[1]
    assert sys.modules["counted_here"].Base is bases[0]


def test_imports_inside_functions_find_the_folder_later(write: Write) -> None:
    write("needed_later.py", "VALUE = 7\n")
    text = "import importlib\ndef make():\n    import needed_later\n    return needed_later.VALUE\n"
    make = named(f"{write('gan.py', text)}:make", "generator")
    before = list(sys.path)
    assert make() == 7
    assert sys.path == before


def test_a_folder_that_the_file_puts_on_the_path(write: Write) -> None:
    write("common/shared_here.py", "VALUE = 3\n")
    write("common/lazy_here.py", "VALUE = 4\n")
    path = write(
        "models/gan.py",
        """
        import sys
        sys.path.append("../common")
        from shared_here import VALUE
        def make():
            from lazy_here import VALUE as lazy
            return VALUE, lazy
        """,
    )
    before = list(sys.path)
    assert named(f"{path}:make", "generator")() == (3, 4)
    assert sys.path == before


def test_a_file_of_a_package_imports_relatively(write: Write) -> None:
    write("nets_pkg/layers.py", "WIDTH = 5\n")
    write("nets_pkg/__init__.py", "NAME = 'nets'\n")
    path = write("nets_pkg/gan.py", "from .layers import WIDTH\nfrom . import NAME\ndef make(): return WIDTH, NAME\n")
    assert named(f"{path}:make", "generator")() == (5, "nets")
    bare = write(
        "bare_pkg/sub/gan.py", "from ..layers import WIDTH\nfrom .more import M\ndef make(): return WIDTH, M\n"
    )
    write("bare_pkg/layers.py", "WIDTH = 6\n")
    write("bare_pkg/sub/more.py", "M = 1\n")
    assert named(f"{bare}:make", "generator")() == (6, 1)


def test_star_imports_and_settings_of_a_neighbour(write: Write) -> None:
    write("options_here.py", "class cfg: width = 1\ndef prepare(cfg): cfg.width *= 2\nDEPTH = 9\n")
    path = write(
        "gan.py",
        """
        from options_here import cfg
        from options_here import *
        cfg.width = 5
        prepare(cfg)
        print("at work")
        undefined_download()
        class Generator:
            width = cfg.width
            depth = DEPTH
        """,
    )
    made = named(f"{path}:Generator", "generator")
    assert (made.width, made.depth) == (10, 9)


def test_the_processs_own_modules_come_back(write: Write) -> None:
    import click

    write("click.py", "VALUE = 1\n")
    path = write("gan.py", "from click import VALUE\nimport json\n")
    assert named(f"{path}:VALUE", "generator") == 1
    assert sys.modules["click"] is click


def test_a_package_is_imported_in_the_same_surroundings(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys\nprint('hello', sys.argv[1:])\nwith open('x', 'w') as f:\n    f.write('abc')\nNet = int\n"
    path = write("own_package/nets.py", text)
    monkeypatch.chdir(path.parents[1])
    monkeypatch.syspath_prepend("")
    assert named("own_package.nets:Net", "generator", ["--a"]) is int
    record = loading("own_package.nets:Net", "generator", ["--a"])
    assert record.prints == "hello ['--a']\n"
    assert record.wrote == {"x": 3}
    assert not Path("x").exists()


def test_an_edited_file_is_loaded_anew(write: Write) -> None:
    place = f"{write('edited.py', 'VALUE = 1')}:VALUE"
    assert named(place, "generator") == 1
    write("edited.py", "VALUE = 2")
    assert named(place, "generator") == 2


def test_what_it_wrote_and_printed_is_told_and_removed(write: Write, tmp_path: Path) -> None:
    path = write(
        "writes.py",
        """
        import os, sys
        os.makedirs("unneeded")
        def prepare():
            os.makedirs("../../data/pictures")
            with open("log.txt", "w") as log:
                log.write("12345")
            print("prepared", sys.argv[1:], len(os.listdir(".")))
            sys.stderr.write("x" * 9000)
            return 4
        width = prepare()
        class Generator:
            size = width
        """,
    )
    record = loading(f"{path}:Generator", "generator", ["-v"])
    assert record.wrote == {"../../data/pictures/": 0, "log.txt": 5}
    assert record.prints.startswith("prepared ['-v'] 1\nxxx")
    assert len(record.prints) < 4100
    assert {p.name for p in tmp_path.iterdir()} == {"writes.py"}


def test_an_order_that_matters_is_the_files(write: Write) -> None:
    """The second name needs what the first one's statements came after: all is run anew, in the file's order."""
    path = write(
        "ordered.py",
        """
        made = list()
        width = len(made)
        made.append(1)
        class First:
            size = tuple(made)
        class Second:
            size = (width, *made)
        class Third:
            size = width
        """,
    )
    assert named(f"{path}:First", "generator").size == (1,)
    assert named(f"{path}:Third", "generator").size == 0
    assert named(f"{path}:Second", "generator").size == (0, 1)


def test_relative_data_does_not_resolve_and_the_error_says_why(write: Write) -> None:
    path = write("reads.py", "table = open('table.txt').read()\nclass G:\n    t = table\n")
    write("table.txt", "1")
    with pytest.raises(UserCodeError, match=r"FileNotFoundError at line 1: .* \(it is loaded in an empty folder"):
        named(f"{path}:G", "generator")
