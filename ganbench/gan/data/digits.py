"""`digits`: the 1797 handwritten digits of 8×8 pixels that come with scikit-learn."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ganbench.errors import DatasetError
from ganbench.gan.data.data import Data
from ganbench.gan.data.fit import fit

if TYPE_CHECKING:
    from ganbench.spec.dataset import PictureSpec

_SIDE = 8
_WHITE = 16


def load_digits(spec: PictureSpec) -> Data:
    """All 1797 digits in scikit-learn's order; its grey values 0 to 16 become 0 to 255, rounded.

    Raises:
        DatasetError: scikit-learn is not installed.
    """
    grey = np.rint(grey_values() * (255 / _WHITE)).astype(np.uint8)
    pictures = torch.from_numpy(grey).view(-1, 1, _SIDE, _SIDE)
    labels = torch.from_numpy(table()[:, -1].astype(np.int64))
    return Data(spec.name, fit(pictures, spec.size, spec.channels), spec.range, labels=labels, classes=10)


def grey_values() -> NDArray[np.float64]:
    """(1797, 64), 0 to 16.

    Raises:
        DatasetError: scikit-learn is not installed.
    """
    return table()[:, : _SIDE * _SIDE]


@cache
def table() -> NDArray[np.float64]:
    """(1797, 65): grey values and the label; kept, since the fork server reads them once for all runs."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise DatasetError("dataset digits comes with scikit-learn, which is not here: pip install scikit-learn")
    # Reading the table takes 0.02 s, importing sklearn.datasets for the same numbers about 1 s in every run.
    table = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if table.is_file():
        values: NDArray[np.float64] = np.loadtxt(table, delimiter=",")
        return values
    return _asked_of_sklearn()


def _asked_of_sklearn() -> NDArray[np.float64]:
    """The same numbers by the public way, should a version of scikit-learn keep the table elsewhere."""
    # Slow to import, and a run on another dataset must not pay for it.
    from sklearn.datasets import load_digits as sklearn_digits

    bunch: Any = sklearn_digits()
    values: NDArray[np.float64] = np.column_stack([bunch.data, bunch.target])
    return values
