"""Files shaped like public ones: their classes work, the files are untouched, and nothing of theirs is started."""

from __future__ import annotations

import inspect
import os
import pickle
import shutil
import socket
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import loading, named
from ganbench.gan.models.user import user_network
from ganbench.record.loading import Loaded

SCRIPTS = Path(__file__).with_name("scripts")

# file, command line, generator's arguments, one batch of latents, shape of the pictures, discriminator's arguments
PUBLIC = [
    ("options_first.py", ["--img_size", "8"], {}, (3, 100), (3, 1, 8, 8), {}),
    ("data_before_classes.py", ["--dataset", "mnist", "--imageSize", 32], {"ngpu": 1}, (3, 100, 1, 1), (3, 1, 32, 32),
     {"ngpu": 1}),
    ("data_before_classes.py", ["--dataset", "lfw", "--ngf", "8"], {"ngpu": 1}, (2, 100, 1, 1), (2, 3, 32, 32),
     {"ngpu": 1}),
    ("late_pieces.py", [], {}, (3, 8), (3, 16), {}),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SCRIPTS, tmp_path / "theirs", ignore=shutil.ignore_patterns("__pycache__")))


def environment() -> dict[str, str]:
    others = ("PYTEST_", "TORCHINDUCTOR_", "TRITON_")
    return {name: value for name, value in os.environ.items() if not name.startswith(others)}


@pytest.fixture(autouse=True)
def _nothing_of_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No training, no connection, nothing written, everything put back."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the script's own work was started")

    monkeypatch.setattr(torch.Tensor, "backward", never)
    monkeypatch.setattr(torch.optim.Adam, "step", never)
    monkeypatch.setattr(torch.utils.data.DataLoader, "__init__", never)
    monkeypatch.setattr(socket.socket, "connect", never)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(tmp_path)
    before = (os.getcwd(), list(sys.argv), list(sys.path), environment())
    seed = torch.get_rng_state()
    yield
    assert before == (os.getcwd(), sys.argv, sys.path, environment())
    assert torch.equal(torch.get_rng_state(), seed)
    assert not [path for path in scratch.iterdir() if "torchinductor" not in path.name]  # torch makes that itself
    theirs = tmp_path / "theirs"
    if theirs.exists():
        assert {path.name for path in theirs.rglob("*")} >= {path.name for path in SCRIPTS.glob("*.py")}
        assert not [path for path in theirs.rglob("*") if path.is_file() and path.suffix != ".py"]
    assert {path.name for path in tmp_path.iterdir()} <= {"theirs", "tmp"}


@pytest.mark.parametrize(("file", "argv", "arguments", "latents", "pictures", "of_d"), PUBLIC)
def test_both_networks_of_a_public_script_work(
    folder: Path, file: str, argv: list[Any], arguments: Any, latents: Any, pictures: Any, of_d: Any
) -> None:
    place = str(folder / file)
    generator = named(f"{place}:Generator", "generator", argv)
    discriminator = named(f"{place}:Discriminator", "discriminator", argv)
    with torch.random.fork_rng(devices=[]):
        fake: Tensor = generator(**arguments)(torch.randn(latents))
        scores: Tensor = discriminator(**of_d)(fake)
    assert fake.shape == pictures
    assert len(scores) == latents[0]
    assert generator.__module__ == discriminator.__module__
    assert sys.modules[generator.__module__].Generator is generator


def lines(record: Loaded) -> set[int]:
    return {statement.line for statement in record.statements_run}


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if line.lstrip().startswith(text))


def test_what_was_run_and_where_it_stopped_is_told(folder: Path) -> None:
    path = folder / "options_first.py"
    record = loading(f"{path}:Generator", "generator", ["--img_size", "8"])
    run = lines(record)
    assert {line_of(path, "opt = parser"), line_of(path, "img_shape ="), line_of(path, "class Generator")} <= run
    for text in ("os.makedirs", "print(opt)", "class Discriminator", "generator = ", "dataloader =", "for epoch"):
        assert line_of(path, text) not in run
        assert any(first <= line_of(path, text) <= last for first, last in record.not_run)
    assert record.stopped_at == line_of(path, "class Discriminator")
    assert not record.whole
    assert record.argv == ("--img_size", "8")
    assert record.wrote == {}
    assert record.seconds > 0
    assert f"stopped at line {record.stopped_at}" in record.summary()
    assert Loaded.model_validate_json(record.model_dump_json()) == record


def test_every_line_with_a_statement_is_either_run_or_not(folder: Path) -> None:
    for file, argv, *_ in PUBLIC:
        record = loading(f"{folder / file}:Generator", "generator", argv)
        not_run = {n for first, last in record.not_run for n in range(first, last + 1)}
        assert not lines(record) & not_run


def test_data_that_is_chosen_beside_a_size_is_not_made(folder: Path) -> None:
    path = folder / "data_before_classes.py"
    record = loading(f"{path}:Generator", "generator", ["--dataset", "cifar10"])
    run = lines(record)
    assert line_of(path, "nc = 3") in run
    for text in ("dataset = dset.CIFAR10", "os.makedirs", "raise ValueError", "netG = ", "dataloader ="):
        assert line_of(path, text) not in run
    # The seed is asked for by the definitions: it is what `opt` has become by then.
    assert "cudnn.benchmark" in record.switches
    assert record.switches["cudnn.benchmark"] == ("False", "True")


def test_the_second_name_goes_into_the_same_module(folder: Path) -> None:
    place = str(folder / "late_pieces.py")
    generator = named(f"{place}:Generator", "generator")
    named(f"{place}:Discriminator", "discriminator")
    assert named(f"{place}:Generator", "generator") is generator
    assert loading(f"{place}:Generator", "generator").not_run == loading(f"{place}:Discriminator", "d").not_run


def test_another_command_line_is_another_module(folder: Path) -> None:
    place = f"{folder / 'options_first.py'}:Generator"
    small, large = (named(place, "generator", ["--img_size", size]) for size in ("8", "16"))
    assert small is not large
    with torch.random.fork_rng(devices=[]):
        assert small()(torch.randn(2, 100)).shape[-1] == 8
        assert large()(torch.randn(2, 100)).shape[-1] == 16


def test_a_loss_of_a_script_needs_none_of_its_options(folder: Path) -> None:
    loss = named(f"{folder / 'data_before_classes.py'}:criterion", "loss")
    assert isinstance(loss, torch.nn.BCELoss)


def test_an_option_that_is_missing_is_told_as_the_file_told_it(folder: Path) -> None:
    place = folder / "data_before_classes.py"
    with pytest.raises(UserCodeError) as caught:
        named(f"{place}:Generator", "generator")
    text = str(caught.value)
    assert f"'{place}' could not read its command line at line {line_of(place, 'opt =')}" in text
    assert "the following arguments are required: --dataset" in text
    assert "argv: [--img_size, 32]" in text
    assert "\n" not in text


def test_an_option_that_the_file_does_not_know(folder: Path) -> None:
    with pytest.raises(UserCodeError, match=r"argv: \[--size, 3\].*unrecognized arguments: --size 3"):
        named(f"{folder / 'options_first.py'}:Generator", "generator", ["--size", "3"])


def test_a_guarded_script_is_a_plain_module(folder: Path) -> None:
    place = folder / "guarded.py"
    generator = named(f"{place}:Generator", "generator")
    with torch.random.fork_rng(devices=[]):
        assert generator(4).layer.out_features == 4
    assert loading(f"{place}:Generator", "generator").whole


def test_a_name_that_only_the_guard_binds_is_an_error_that_names_the_line(folder: Path) -> None:
    place = folder / "guarded.py"
    with pytest.raises(UserCodeError) as caught:
        named(f"{place}:Placed", "generator")
    assert f"reads 'device' at line {line_of(place, 'class Placed')}" in str(caught.value)
    assert f"line {line_of(place, 'device =')} under `if __name__" in str(caught.value)
    with pytest.raises(UserCodeError, match="makes 'device' only in line"):
        named(f"{place}:device", "generator")


def test_a_constructor_that_wants_arguments_says_which(folder: Path) -> None:
    place = folder / "guarded.py"
    with pytest.raises(UserCodeError) as caught:
        user_network(f"{place}:Generator", {}, "generator")
    text = str(caught.value)
    assert f"Generator() of '{place}' raised TypeError: " in text
    assert f"(line {line_of(place, 'def __init__')}; it takes width: give them as generator_args)" in text


def test_a_name_that_is_nearly_there(folder: Path) -> None:
    with pytest.raises(UserCodeError, match=r"no 'Generater'; did you mean 'Generator'\? its classes are D"):
        named(f"{folder / 'options_first.py'}:Generater", "generator")


def test_a_question_is_no_wait_for_ever(folder: Path) -> None:
    with pytest.raises(UserCodeError, match="EOFError at line 3"):
        named(f"{asking(folder)}:width", "generator")


def asking(folder: Path) -> Path:
    path = folder / "asking.py"
    path.write_text("import os\nos.makedirs('x')\nwidth = int(input('width? '))\n")
    return path


def test_switches_are_noticed_and_put_back(folder: Path) -> None:
    place = f"{folder / 'sets_switches.py'}:Generator"
    streams = (sys.stdout, sys.stderr)
    record = loading(place, "generator")
    assert (sys.stdout, sys.stderr) == streams
    expected = {
        "anomaly mode", "cudnn.benchmark", "cudnn.deterministic", "cudnn.enabled", "default dtype", "grad mode",
        "deterministic algorithms", "matmul precision", "threads", "warnings filters",
        "environment CUBLAS_WORKSPACE_CONFIG", "torch random state", "numpy random state", "python random state",
    }  # fmt: skip
    assert expected <= set(record.switches)
    assert record.switches["default dtype"] == ("torch.float32", "torch.float64")
    assert record.switches["threads"][1] == "3"
    assert not torch.is_anomaly_enabled()
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert not torch.are_deterministic_algorithms_enabled()
    # It had its effect on what the class reads, and what is no switch of the process was left out.
    assert named(place, "generator")()(torch.ones(3, dtype=torch.float64)).dtype == torch.float64
    assert record.wrote == {}
    assert "seeded" not in record.prints


def test_python_finds_the_source_and_the_class(folder: Path) -> None:
    path = folder / "options_first.py"
    generator = named(f"{path}:Generator", "generator", ["--img_size", "8"])
    assert inspect.getsource(generator).startswith("class Generator(nn.Module):")
    assert pickle.loads(pickle.dumps(generator)) is generator
    with pytest.raises(RuntimeError) as caught, torch.random.fork_rng(devices=[]):
        generator()(torch.randn(3, 7))
    shown = "".join(traceback.format_exception(caught.value))
    assert "img = self.model(z)" in shown
    assert str(path) in shown


def test_loading_twice_gives_the_same(folder: Path) -> None:
    first = loading(f"{folder / 'sets_switches.py'}:table", "dataset")
    table = named(f"{folder / 'sets_switches.py'}:table", "dataset")
    copy = shutil.copytree(folder, folder.parent / "theirs" / "again", ignore=shutil.ignore_patterns("again"))
    again = named(f"{Path(copy) / 'sets_switches.py'}:table", "dataset")
    assert torch.equal(table, again)
    assert {s.line for s in first.statements_run}


def test_compiled_networks_find_what_the_file_binds(folder: Path) -> None:
    generator = named(f"{folder / 'options_first.py'}:Generator", "generator", ["--img_size", "8"])
    with torch.random.fork_rng(devices=[]):
        network = generator().eval()
        z = torch.randn(2, 100)
        assert torch.allclose(torch.compile(network, backend="eager")(z), network(z))
