"""`mnist`, `fashion_mnist`, `kmnist` and `cifar10`, read from a folder by torchvision's own classes."""

from __future__ import annotations

import contextlib
import http.client
import io
import pickle
import socket
import tarfile
import urllib.error
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ganbench.errors import DatasetError
from ganbench.gan.data.data import Data
from ganbench.gan.data.files import DOWNLOADABLE, Files, require_folder, root_of
from ganbench.gan.data.fit import fit

if TYPE_CHECKING:
    from ganbench.spec.dataset import PictureSpec

SILENCE_S = 30.0
"""Seconds that a server may stay silent before a download is given up."""

_CLASSES = {"cifar10": "CIFAR10", "fashion_mnist": "FashionMNIST", "kmnist": "KMNIST", "mnist": "MNIST"}

_CLASS_COUNT = 10

# What torchvision's classes raise for files that are absent, cut off, not what their name says, or not to be
# had. OSError covers URLError, time-outs, refused permissions and bad gzip data.
_FAILURES = (
    RuntimeError,
    ValueError,
    TypeError,
    AssertionError,
    EOFError,
    OSError,
    http.client.HTTPException,
    pickle.PickleError,
    tarfile.TarError,
    zlib.error,
)

_CAUSE_LENGTH = 160


def load_pictures(spec: PictureSpec, *, download: bool = False, silence_s: float = SILENCE_S) -> Data:
    """The training split, resized to `spec.size` and made to fit `spec.channels`.

    Args:
        download: fetch the files into `spec.root` if they are not there.
        silence_s: seconds that a server may stay silent before the download is given up.

    Raises:
        DatasetError: the files are absent or damaged, the folder may not be read, or the download failed.
    """
    files = DOWNLOADABLE[spec.name]
    root = root_of(spec)
    wanted = root / files.folder
    for folder in (root, *reversed([up for up in wanted.parents if root in up.parents]), wanted):
        require_folder(spec.name, folder)
    read = _class(spec.name)
    try:
        with _download_manners(silence_s) if download else contextlib.nullcontext():
            stored = read(str(root), train=True, download=download)
    except _FAILURES as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # It holds the connection.
        raise _explain(spec.name, root, files, download, error) from error
    pictures = fit(_channels_first(stored.data), spec.size, spec.channels)
    labels = torch.as_tensor(stored.targets, dtype=torch.int64)
    return Data(spec.name, pictures, spec.range, labels=labels, classes=_CLASS_COUNT)


def _class(name: str) -> Any:
    """Of its instances, `data` is uint8: a tensor (N, H, W), or an array (N, H, W, 3) for CIFAR10; `targets` are their
    labels, 0 to 9."""
    # torchvision takes a second to import, and a run on another dataset must not pay for it.
    from torchvision import datasets

    return getattr(datasets, _CLASSES[name])


def _channels_first(stored: Any) -> Tensor:
    """uint8 (N, C, H, W)."""
    pictures = torch.as_tensor(stored)
    return pictures.unsqueeze(1) if pictures.ndim == 3 else pictures.permute(0, 3, 1, 2)


@contextlib.contextmanager
def _download_manners(silence_s: float) -> Iterator[None]:
    """No waiting for ever, which torchvision would do, and no progress bars."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(silence_s)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        socket.setdefaulttimeout(before)


def _explain(name: str, root: Path, files: Files, download: bool, error: Exception) -> DatasetError:
    """Two lines: what is wrong with which files, and what to do."""
    missing = files.missing(root)
    cause = _one_line(error)
    if not missing:
        return DatasetError(
            f"dataset {name}: files in '{root / files.folder}' are damaged or cannot be read: {cause}\n"
            f"delete {files.summary} and use `--download`, or name another folder with `--data-root DIR`"
        )
    whole, lacks = "", ""
    if len(missing) < len(files.names):
        whole, lacks = " whole", f" but lacks {', '.join(path.name for path in missing)}"
    if download:
        return DatasetError(
            f"dataset {name} is not{whole} in '{root}', and could not be downloaded: {cause}\n"
            f"put {files.summary} there, or name the folder that holds it with `--data-root DIR`, "
            "or try `--download` again later"
        )
    unpack = ""
    if all(path.with_name(f"{path.name}.gz").is_file() for path in missing):
        unpack = f"unpack the .gz files (gunzip '{root / files.folder}'/*.gz), or "
    return DatasetError(
        f"dataset {name} is not{whole} in '{root}', which must hold {files.summary}{lacks}\n"
        f"{unpack}name the folder that holds it with `--data-root DIR`, or fetch it with `--download`"
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _CAUSE_LENGTH else f"{text[: _CAUSE_LENGTH - 1]}…"
