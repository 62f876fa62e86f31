"""A user's own file: what is loaded, and what is said where that fails."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from ganbench.errors import UserCodeError
from ganbench.gan.models.user import user_network

Write = Callable[..., str]

GOOD = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=3):
            super().__init__()
            self.layer = nn.Linear(2, width)

    class Other(nn.Module):
        pass
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(text: str, name: str = "net_for_test.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)

    return file


def message(place: str, **arguments: object) -> str:
    with pytest.raises(UserCodeError) as caught:
        user_network(place, arguments, "generator")
    text = str(caught.value)
    assert text.startswith("generator: ")
    assert "\n" not in text
    return text


def test_a_class_from_a_file_gets_its_arguments(write: Write) -> None:
    network = user_network(f"{write(GOOD)}:Net", {"width": 7}, "generator")
    assert isinstance(network, nn.Module)
    assert network.layer.out_features == 7


def test_a_class_from_a_package(own_path: str) -> None:
    assert isinstance(user_network("torch.nn:Identity", {}, "generator"), nn.Identity)
    assert type(user_network(f"{own_path}:Shift", {}, "generator")).__name__ == "Shift"


@pytest.fixture
def own_path() -> str:
    return str(Path(__file__).parents[1] / "networks.py")


def test_a_function_may_make_the_network(write: Write) -> None:
    place = write("from torch import nn\ndef make(n): return nn.Linear(n, n)\n")
    assert user_network(f"{place}:make", {"n": 3}, "generator").in_features == 3


def test_a_file_may_import_its_neighbour(write: Write) -> None:
    write("WIDTH = 6\n", "neighbour_for_test.py")
    place = write(
        "from torch import nn\nfrom neighbour_for_test import WIDTH\ndef make(): return nn.Linear(1, WIDTH)\n"
    )
    assert user_network(f"{place}:make", {}, "generator").out_features == 6


def test_files_of_the_same_name_are_told_apart(write: Write) -> None:
    for width in (2, 5):
        place = write(f"from torch import nn\ndef make(): return nn.Linear(1, {width})\n", f"in{width}/net_twin.py")
        assert user_network(f"{place}:make", {}, "generator").out_features == width


@pytest.mark.parametrize("place", ["net.py", ":Net", "net.py:", ""])
def test_a_place_has_a_file_and_a_name(place: str) -> None:
    text = message(place)
    assert "file.py:Name" in text
    assert f"'{place}'" in text


def test_a_missing_file(tmp_path: Path) -> None:
    place = str(tmp_path / "absent.py")
    assert f"no file '{place}'" in message(f"{place}:Net")


def test_a_missing_package() -> None:
    text = message("no_such_package_here.models:Net")
    assert "no_such_package_here.models" in text
    assert "ModuleNotFoundError" in text


def test_a_syntax_error_names_file_and_line(write: Write) -> None:
    place = write("from torch import nn\n\nclass Net(nn.Module)\n    pass\n")
    text = message(f"{place}:Net")
    assert place in text
    assert "SyntaxError at line 3" in text


def test_a_syntax_error_in_a_neighbour_names_the_neighbour(write: Write) -> None:
    write("x = (\n\n", "broken_neighbour.py")
    place = write("from torch import nn\nimport broken_neighbour\n")
    text = message(f"{place}:Net")
    assert "broken_neighbour.py" in text
    assert "SyntaxError at line 1 of " in text


def test_an_error_in_a_package_names_the_line(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write("", "package_for_test/__init__.py")
    write("def make():\n    raise OSError('no weights')\n", "package_for_test/nets.py")
    write("x = 1\nx / 0\n", "package_for_test/broken.py")
    monkeypatch.syspath_prepend(tmp_path)
    told = "make() of 'package_for_test.nets' raised OSError at line 2: no weights"
    assert told in message("package_for_test.nets:make")
    assert "ZeroDivisionError at line 2" in message("package_for_test.broken:make")


def test_an_error_while_loading_names_file_and_line(write: Write) -> None:
    place = write("import torch\n\nx = 1 / 0\n")
    text = message(f"{place}:Net")
    assert place in text
    assert "ZeroDivisionError at line 3: division by zero" in text


def test_a_file_that_failed_once_says_the_same_again(write: Write) -> None:
    """The first attempt leaves no half-loaded module behind that would hide the reason."""
    place = write("class Early: pass\nx = 1 / 0\nclass Net: pass\n")
    assert message(f"{place}:Net") == message(f"{place}:Net")
    assert "line 2" in message(f"{place}:Early")


def test_a_script_that_exits_while_loading_is_an_error_of_the_file(write: Write) -> None:
    place = write("import sys\n\nsys.exit(2)\n")
    text = message(f"{place}:Net")
    assert place in text
    assert "SystemExit at line 3" in text


def test_a_missing_name_lists_the_files_classes(write: Write) -> None:
    place = write(GOOD)
    text = message(f"{place}:Nett")
    assert place in text
    assert "'Nett'" in text
    assert "Net, Other" in text


def test_a_constructor_that_raises_names_the_call_and_the_line(write: Write) -> None:
    place = write(
        """
        from torch import nn

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                raise ValueError(f"no width {width}")
        """
    )
    assert f"Net(width=3) of '{place}' raised ValueError at line 7: no width 3" in message(f"{place}:Net", width=3)


def test_the_line_is_one_of_the_users_file_though_torch_has_a_file_of_that_name(write: Write) -> None:
    """torch raises deep inside its own linear.py."""
    place = write("from torch import nn\n\n\ndef make():\n    return nn.Linear(-1, 2)\n", "linear.py")
    text = message(f"{place}:make")
    assert "RuntimeError at line 5" in text


def test_an_argument_that_the_constructor_does_not_know(write: Write) -> None:
    text = message(f"{write(GOOD, 'user.py')}:Net", depth=2)
    assert "Net(depth=2) of '" in text
    assert "user.py' raised TypeError: " in text
    assert "unexpected keyword argument 'depth'" in text


@pytest.mark.parametrize("body", ["return 5", "return lambda z: z", "return None"])
def test_what_is_made_must_be_a_module(write: Write, body: str) -> None:
    place = write(f"def make():\n    {body}\n")
    text = message(f"{place}:make")
    assert "torch.nn.Module" in text
    assert "make" in text


def test_the_global_random_state_is_not_touched_by_loading(write: Write) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    user_network(f"{write('from torch import nn' + chr(10) + 'Net = nn.Identity' + chr(10))}:Net", {}, "generator")
    assert torch.equal(torch.get_rng_state(), before)
