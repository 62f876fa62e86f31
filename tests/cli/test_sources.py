"""A user's files: where they are found, and what of them makes a run another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganbench.cli.prepare import sweep_of
from ganbench.cli.sources import hashes_of, with_sources
from ganbench.errors import UserCodeError
from ganbench.execute.local import LocalExecutor
from ganbench.spec.experiment import read_fields
from ganbench.spec.loss import UserLossSpec
from ganbench.spec.model import UserModelSpec
from ganbench.spec.run import RunSpec

EXPERIMENT = """
model:
  generator: nets/gan.py:G
  discriminator: nets/gan.py:D
  init: nets/init.py:weights
  output: {discriminator: nets/pick.py:first}
dataset: data.py:make
loss: {generator: nets/losses.py:g, discriminator: torch.nn:MSELoss}
optimizer: {name: opt.py:make}
device: cpu
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nets" / "parts").mkdir(parents=True)
    for name, text in {
        "nets/gan.py": "from torch import nn\nimport os\nfrom blocks import Block\nfrom parts.norm import make\n",
        "nets/blocks.py": "import deeper\nfrom gan import G\n",
        "nets/deeper.py": "x = 1\n",
        "nets/unused.py": "x = 1\n",
        "nets/parts/__init__.py": "",
        "nets/parts/norm.py": "from . import deep\n",
        "nets/parts/deep.py": "",
        "nets/init.py": "",
        "nets/pick.py": "",
        "nets/losses.py": "",
        "data.py": "",
        "opt.py": "",
        "mine.yaml": EXPERIMENT,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def settled(folder: Path, name: str = "mine.yaml") -> RunSpec:
    where = str(folder / name)
    sweep, _ = sweep_of(read_fields(Path(where)), where, LocalExecutor())
    return sweep.arms[0]


def plain(spec: RunSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json")


def test_every_place_is_found_beside_the_experiment(folder: Path) -> None:
    arm = plain(settled(folder))
    assert arm["model"]["generator"] == f"{folder}/nets/gan.py:G"
    assert arm["model"]["init"] == f"{folder}/nets/init.py:weights"
    assert arm["model"]["output"]["discriminator"] == f"{folder}/nets/pick.py:first"
    assert arm["dataset"]["name"] == f"{folder}/data.py:make"
    assert arm["loss"]["generator"] == f"{folder}/nets/losses.py:g"
    assert arm["loss"]["discriminator"] == "torch.nn:MSELoss"
    assert arm["optimizer"]["name"] == f"{folder}/opt.py:make"
    assert set(arm["loss"]["sources"]) == {"losses.py"}


def test_files_that_are_imported_from_beside_count_too(folder: Path) -> None:
    sources = plain(settled(folder))["model"]["sources"]
    assert set(sources) == {
        "gan.py", "blocks.py", "deeper.py", "norm.py", "__init__.py", "deep.py", "init.py", "pick.py"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["nets/gan.py", "nets/deeper.py", "nets/parts/deep.py", "data.py", "opt.py"])
def test_an_edited_file_is_another_run(folder: Path, name: str) -> None:
    before = settled(folder).run_key
    (folder / "nets" / "unused.py").write_text("y = 2\n")
    assert settled(folder).run_key == before
    (folder / name).write_text("y = 2\n")
    assert settled(folder).run_key != before


def test_another_folder_is_the_same_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "copy"
    folder.rename(other)
    there = settled(other)
    other.rename(folder)
    here = settled(folder)
    assert plain(here)["model"]["generator"] != plain(there)["model"]["generator"]
    assert here.run_key == there.run_key


def test_the_working_directory_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "nets").mkdir(parents=True)
    (elsewhere / "nets" / "init.py").write_text("# another\n")
    monkeypatch.chdir(elsewhere)
    assert plain(settled(folder))["model"]["init"] == f"{elsewhere}/nets/init.py:weights"


def test_a_shipped_experiment_finds_its_files_by_its_bare_name() -> None:
    from ganbench.spec.experiment import find_experiment

    fields = read_fields(find_experiment("bring_your_own"))
    sweep, _ = sweep_of(fields, "bring_your_own", LocalExecutor())
    assert {Path(str(plain(arm)["model"]["generator"]).rpartition(":")[0]).name for arm in sweep.arms} == {"dcgan.py"}
    assert all(Path(str(plain(arm)["model"]["generator"]).rpartition(":")[0]).is_file() for arm in sweep.arms)


@pytest.mark.parametrize(
    ("spec", "part", "text"),
    [
        (UserModelSpec(generator="no.py:G", discriminator="no.py:D"), "model", "generator: no file 'no.py'"),
        (UserModelSpec(factory="no.py:f"), "model", "factory: no file 'no.py'"),
        (UserLossSpec(generator="no.py:g", discriminator="no.py:d"), "loss", "loss.generator: no file 'no.py'"),
        (UserLossSpec.model_validate({"name": "no.py:L"}), "loss", "loss: no file 'no.py'"),
    ],
)
def test_a_missing_file_names_the_key(spec: Any, part: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError) as caught:
        with_sources(spec, tmp_path, part)
    assert text in str(caught.value)


def test_two_files_of_one_name_both_count(tmp_path: Path) -> None:
    files = []
    for n, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "net.py")
        files[-1].write_text(f"x = {n}\n")
    assert set(hashes_of(files)) == {"net.py", "net.py (2)"}
