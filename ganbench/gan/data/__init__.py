"""Real pictures, points and what users bring: loaded once, handed out as an endless shuffled stream of batches.

`load` reads a dataset, `present` says whether that is possible here, `BatchStream` feeds training. A dataset
is one function `spec -> Data` and one row of `_LOADERS`. Names are imported when they are first used: asking
`present` or `folder_content` needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ganbench.gan.data.files import DOWNLOADABLE, present

if TYPE_CHECKING:
    from ganbench.gan.data.data import Data, Mixture
    from ganbench.gan.data.folder import folder_content
    from ganbench.gan.data.stream import BatchStream
    from ganbench.spec.dataset import AnyDataset

__all__ = ["BatchStream", "Data", "Mixture", "folder_content", "load", "present"]

# name of a dataset -> module:function
_LOADERS = {
    "cifar10": "pictures:load_pictures",
    "digits": "digits:load_digits",
    "fashion_mnist": "pictures:load_pictures",
    "folder": "folder:load_folder",
    "grid25": "mixtures:load_mixture",
    "kmnist": "pictures:load_pictures",
    "mnist": "pictures:load_pictures",
    "ring8": "mixtures:load_mixture",
}

_EXPORTS = {"BatchStream": "stream", "Data": "data", "Mixture": "data", "folder_content": "folder"}


def load(spec: AnyDataset, *, download: bool = False) -> Data:
    """Read a dataset into main memory, in the form that `spec` asks for.

    Args:
        download: fetch absent files into `spec.root`; without effect on datasets that cannot be fetched.

    Raises:
        DatasetError: the dataset is absent, damaged, or cannot be fetched.
        UserCodeError: a user's own file cannot be used.
    """
    module, function = _LOADERS.get(spec.name, "user:load_user").split(":")
    loader = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    data: Data = loader(spec, download=download) if spec.name in DOWNLOADABLE else loader(spec)
    return data


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
