"""torchvision's datasets: from fixture files, from Debian's package, damaged, absent, and from servers."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ganbench.errors import DatasetError
from ganbench.gan.data import load, present
from ganbench.gan.data.pictures import load_pictures
from ganbench.spec.dataset import PictureSpec

Write = Callable[[str, Path], Path]
MNISTS = ["mnist", "fashion_mnist", "kmnist"]
CLASSES = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "kmnist": "KMNIST", "cifar10": "CIFAR10"}


def spec(name: Any, root: Path, **form: Any) -> PictureSpec:
    return PictureSpec.model_validate({"name": name, "root": str(root), **form})


def refused(name: str, root: Path, **options: Any) -> str:
    """The message of the one error: two lines that name the dataset and what to do."""
    before = socket.getdefaulttimeout()
    with pytest.raises(DatasetError) as caught:
        load_pictures(spec(name, root), **options)
    message = str(caught.value)
    assert socket.getdefaulttimeout() == before
    assert len(message.splitlines()) == 2
    assert max(len(line) for line in message.splitlines()) < 500
    assert name in message
    assert "--data-root DIR" in message
    return message


# --- files that are there ---


@pytest.mark.parametrize("name", MNISTS)
def test_idx_files_are_read_as_they_are(name: str, tmp_path: Path, write_idx: Write, grey: NDArray[np.uint8]) -> None:
    write_idx(name, tmp_path)
    assert torch.equal(load(spec(name, tmp_path)).items[:, 0], torch.from_numpy(grey))


def test_cifar_batches_are_read_as_they_are(
    tmp_path: Path, write_cifar: Callable[[Path], Path], colour: NDArray[np.uint8]
) -> None:
    write_cifar(tmp_path)
    assert torch.equal(load(spec("cifar10", tmp_path)).items, torch.from_numpy(colour))


def test_relative_roots_and_home_are_understood(
    tmp_path: Path, write_idx: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx("mnist", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for root in ("data", "./data", "~/data"):
        assert present(spec("mnist", Path(root)))
        assert load(spec("mnist", Path(root))).count == 6
    monkeypatch.chdir(tmp_path / "data")
    assert load(spec("mnist", Path("."))).count == 6


def test_the_whole_of_fashion_mnist_from_debian_s_package(tmp_path: Path) -> None:
    package = Path("/usr/share/datasets/fashion-mnist")
    if not package.is_dir():
        pytest.skip("needs the Debian package dataset-fashion-mnist")
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for packed in package.glob("*.gz"):
        with gzip.open(packed) as source, (raw / packed.stem).open("wb") as target:
            shutil.copyfileobj(source, target)
    data = load(spec("fashion_mnist", tmp_path))
    assert (data.count, data.shape) == (60000, (1, 28, 28))
    assert data.items.double().mean().item() == pytest.approx(72.94, abs=0.01)
    assert load(spec("fashion_mnist", tmp_path, size=14)).shape == (1, 14, 14)


# --- absent ---


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("root", ["", "absent"])
def test_absent_files(name: str, root: str, tmp_path: Path) -> None:
    message = refused(name, tmp_path / root)
    assert f"'{tmp_path / root}'" in message
    assert "`--download`" in message
    assert "batches.meta" in message if name == "cifar10" else f"{CLASSES[name]}/raw/" in message
    assert not (tmp_path / "absent").exists()


def test_packed_files_are_to_be_unpacked(tmp_path: Path, write_idx: Write) -> None:
    for file in write_idx("kmnist", tmp_path).iterdir():
        file.rename(file.with_name(f"{file.name}.gz"))
    assert not present(spec("kmnist", tmp_path))
    assert "gunzip" in refused("kmnist", tmp_path)


def test_one_file_missing_of_four(tmp_path: Path, write_idx: Write) -> None:
    (write_idx("mnist", tmp_path) / "t10k-labels-idx1-ubyte").unlink()
    assert not present(spec("mnist", tmp_path))
    message = refused("mnist", tmp_path)
    assert "is not whole in" in message
    assert "lacks t10k-labels-idx1-ubyte\n" in message


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file' is a file, not a folder" in refused("mnist", tmp_path / "file")
    (tmp_path / "MNIST").write_text("")
    assert "MNIST' is a file, not a folder" in refused("mnist", tmp_path, download=True)
    (tmp_path / "cifar-10-batches-py").write_text("")
    assert "cifar-10-batches-py' is a file, not a folder" in refused("cifar10", tmp_path)


@pytest.mark.parametrize("closed", ["", "MNIST", "MNIST/raw"])
def test_a_folder_that_may_not_be_read(
    closed: str, tmp_path: Path, write_idx: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx("mnist", tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path / closed)
    assert f"'{tmp_path / closed}' may not be read" in refused("mnist", tmp_path)


def test_a_folder_below_one_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    assert not present(spec("mnist", tmp_path / "x"))
    assert "may not be read" in refused("mnist", tmp_path / "x")


# --- damaged ---

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda raw: raw[:-5],
    "header only": lambda raw: raw[:16],
    "half a header": lambda raw: raw[:6],
    "empty": lambda _raw: b"",
    "other content": lambda _raw: b"<html>not found</html>",
    "other type": lambda raw: b"\0\0\x0d" + raw[3:],
    "labels": lambda _raw: b"\0\0\x08\x01\0\0\0\x02\0\0",
    "no pictures": lambda _raw: b"\0\0\x08\x03" + bytes(12),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", MNISTS)
def test_damaged_pictures(name: str, damage: str, tmp_path: Path, write_idx: Write) -> None:
    file = write_idx(name, tmp_path) / "train-images-idx3-ubyte"
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert "damaged" in refused(name, tmp_path)
    assert "damaged" in refused(name, tmp_path, download=True)


def test_damaged_labels(tmp_path: Path, write_idx: Write) -> None:
    file = write_idx("mnist", tmp_path) / "train-labels-idx1-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    assert "damaged" in refused("mnist", tmp_path)


def test_a_damaged_cifar_batch(tmp_path: Path, write_cifar: Callable[[Path], Path]) -> None:
    file = write_cifar(tmp_path) / "data_batch_3"
    file.write_bytes(file.read_bytes()[:-100])
    assert "damaged" in refused("cifar10", tmp_path)


def test_a_pickle_that_is_none(
    tmp_path: Path, write_cifar: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.datasets import CIFAR10

    file = write_cifar(tmp_path) / "data_batch_1"
    file.write_bytes(b"no pickle")
    first = ["data_batch_1", hashlib.md5(b"no pickle").hexdigest()]
    monkeypatch.setattr(CIFAR10, "train_list", [first, *CIFAR10.train_list[1:]])
    assert "damaged" in refused("cifar10", tmp_path)


# --- servers, all on this machine ---


@pytest.fixture
def point_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Make a dataset's class fetch from a port of this machine."""

    def point(name: str, port: int) -> None:
        from torchvision import datasets

        for proxy in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(proxy, raising=False)
            monkeypatch.delenv(proxy.upper(), raising=False)
        kind = getattr(datasets, CLASSES[name])
        url = f"http://127.0.0.1:{port}/"
        if name == "cifar10":
            monkeypatch.setattr(kind, "url", f"{url}cifar-10-python.tar.gz")
        else:
            monkeypatch.setattr(kind, "mirrors", [url])

    return point


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Connections are accepted by the system, and nobody ever answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A server's port, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], folder
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", CLASSES)
def test_no_server_at_all(name: str, tmp_path: Path, point_at: Callable[[str, int], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    point_at(name, port)
    message = refused(name, tmp_path, download=True)
    assert "could not be downloaded: " in message
    assert "refused" in message


@pytest.mark.parametrize("name", CLASSES)
def test_a_silent_server_is_given_up(
    name: str, tmp_path: Path, point_at: Callable[[str, int], None], silent_port: int
) -> None:
    point_at(name, silent_port)
    message = refused(name, tmp_path, download=True, silence_s=0.2)
    assert "could not be downloaded: " in message
    assert "timed out" in message


def test_a_server_without_the_file(
    tmp_path: Path, point_at: Callable[[str, int], None], served: tuple[int, Path]
) -> None:
    # Not the MNIST family: there torchvision keeps the open connection of that error out of reach.
    point_at("cifar10", served[0])
    assert "404" in refused("cifar10", tmp_path / "data", download=True)


def test_a_download_that_is_not_what_it_should_be(
    tmp_path: Path, point_at: Callable[[str, int], None], served: tuple[int, Path]
) -> None:
    port, folder = served
    point_at("cifar10", port)
    (folder / "cifar-10-python.tar.gz").write_bytes(b"something else")
    assert "could not be downloaded" in refused("cifar10", tmp_path / "data", download=True)


def test_a_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "could not be downloaded" in refused("mnist", tmp_path / "file" / "data", download=True)


def test_a_download_that_succeeds(
    tmp_path: Path,
    write_idx: Write,
    point_at: Callable[[str, int], None],
    served: tuple[int, Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    grey: NDArray[np.uint8],
) -> None:
    from torchvision.datasets import KMNIST

    port, folder = served
    point_at("kmnist", port)
    resources = []
    for file in write_idx("kmnist", tmp_path / "source").iterdir():
        packed = gzip.compress(file.read_bytes())
        (folder / f"{file.name}.gz").write_bytes(packed)
        resources.append((f"{file.name}.gz", hashlib.md5(packed).hexdigest()))
    monkeypatch.setattr(KMNIST, "resources", resources)

    wanted = spec("kmnist", tmp_path / "data")
    assert not present(wanted)
    assert torch.equal(load(wanted, download=True).items[:, 0], torch.from_numpy(grey))
    assert present(wanted)
    assert load(wanted).count == 6
    assert capfd.readouterr() == ("", "")
    assert socket.getdefaulttimeout() is None
