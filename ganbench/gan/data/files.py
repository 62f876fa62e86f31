"""Which files a dataset is read from, and whether they are here. Needs no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ganbench.errors import DatasetError

if TYPE_CHECKING:
    from ganbench.spec.dataset import AnyDataset


@dataclass(frozen=True)
class Files:
    """What torchvision wants below the root: `names` in `folder`; `summary` is short for all of them."""

    folder: str
    names: tuple[str, ...]
    summary: str

    def missing(self, root: Path) -> list[Path]:
        """The files that are not there, under `root`."""
        return [path for name in self.names if not (path := root / self.folder / name).is_file()]


def _idx(class_name: str) -> Files:
    kinds = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    folder = f"{class_name}/raw"
    summary = f"{folder}/{{train,t10k}}-{{images-idx3,labels-idx1}}-ubyte"
    return Files(folder, tuple(f"{kind}-ubyte" for kind in kinds), summary)


_CIFAR10 = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")

DOWNLOADABLE: dict[str, Files] = {
    "cifar10": Files(
        "cifar-10-batches-py", _CIFAR10, "cifar-10-batches-py/{data_batch_{1..5},test_batch,batches.meta}"
    ),
    "fashion_mnist": _idx("FashionMNIST"),
    "kmnist": _idx("KMNIST"),
    "mnist": _idx("MNIST"),
}
"""The datasets that torchvision can fetch."""


def present(spec: AnyDataset) -> bool:
    """Whether the dataset's files are on this machine; they are looked for, not read.

    True for what is generated, installed with ganbench, or a user's own. For the others: every file that
    torchvision wants, or at least one picture in the folder. A folder that may not be read holds nothing.
    """
    if spec.name in DOWNLOADABLE:
        try:
            return not DOWNLOADABLE[spec.name].missing(root_of(spec))
        except OSError:
            return False
    if spec.name == "folder":
        from ganbench.gan.data.folder import has_pictures

        return has_pictures(str(root_of(spec)))
    return True


def root_of(spec: AnyDataset) -> Path:
    """The folder of `spec.root`, with `~` expanded."""
    return Path(getattr(spec, "root", ".")).expanduser()


def require_folder(name: str, folder: Path) -> None:
    """Refuse what is in a folder's place but cannot be used as one; an absent folder passes.

    Raises:
        DatasetError: `folder` is a file, or this user may not read it.
    """
    try:
        wrong = "is a file, not a folder" if folder.exists() and not folder.is_dir() else None
    except OSError:  # A folder above it may not be entered.
        wrong = "may not be read"
    if wrong is None and folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        wrong = "may not be read"
    if wrong is not None:
        raise DatasetError(f"dataset {name}: '{folder}' {wrong}\nname a folder that can be read with `--data-root DIR`")
