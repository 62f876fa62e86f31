"""Everything that can go wrong, in one tree.

GanbenchError
├── UsageError            what was asked for cannot be done; the command ends with exit code 2
│   ├── ExperimentError   an experiment file, a flag or a `--set` is wrong
│   ├── DatasetError      a dataset is absent, damaged or does not fit
│   └── UserCodeError     a user's own file cannot be used
├── DeviceUnavailable     the device asked for is not on this machine: the run is skipped
└── StoreError            the tracking store cannot be read or written

A message says the rule, what was given, and what to do, in one or two lines.

Errors of a training run are no exceptions of ganbench: they are results. `ErrorKind` names them.
"""

from __future__ import annotations

from enum import StrEnum


class GanbenchError(Exception):
    """Root of the errors that ganbench raises on purpose."""


class UsageError(GanbenchError):
    """What was asked for cannot be done; nothing was run."""


class ExperimentError(UsageError):
    """An experiment file, a flag or a `--set` is wrong."""


class DatasetError(UsageError):
    """A dataset is absent, damaged or does not fit what it is asked for."""


class UserCodeError(UsageError):
    """A user's own file cannot be loaded, or lacks what was named."""


class DeviceUnavailable(GanbenchError):
    """The device asked for is not on this machine."""


class StoreError(GanbenchError):
    """The tracking store cannot be read or written."""


class ErrorKind(StrEnum):
    """What made a training run end, told by the stable part of the error's message."""

    GRAPH_FREED = "graph_freed"
    MODIFIED_IN_PLACE = "modified_in_place"
    NO_PATH = "no_path"
    DOUBLE_BACKWARD_UNSUPPORTED = "double_backward_unsupported"
    DONATED_BUFFERS = "donated_buffers"
    OUT_OF_MEMORY = "out_of_memory"
    NON_FINITE = "non_finite"
    SHAPE_MISMATCH = "shape_mismatch"
    OTHER = "other"


# Node names and hints in torch's messages differ between versions; these parts do not. The first match counts.
_STABLE_PARTS: tuple[tuple[str, ErrorKind], ...] = (
    ("backward through the graph a second time", ErrorKind.GRAPH_FREED),
    ("modified by an inplace operation", ErrorKind.MODIFIED_IN_PLACE),
    ("does not currently support double backward", ErrorKind.DOUBLE_BACKWARD_UNSUPPORTED),
    ("donated buffer", ErrorKind.DONATED_BUFFERS),
    ("does not require grad and does not have a grad_fn", ErrorKind.NO_PATH),
    ("appears to not have been used in the graph", ErrorKind.NO_PATH),
    ("out of memory", ErrorKind.OUT_OF_MEMORY),
    ("can't allocate memory", ErrorKind.OUT_OF_MEMORY),
    ("shapes cannot be multiplied", ErrorKind.SHAPE_MISMATCH),
    ("must match the size of tensor", ErrorKind.SHAPE_MISMATCH),
    ("is invalid for input of size", ErrorKind.SHAPE_MISMATCH),
    ("size mismatch", ErrorKind.SHAPE_MISMATCH),
    ("that is different to the input size", ErrorKind.SHAPE_MISMATCH),
    ("expected input", ErrorKind.SHAPE_MISMATCH),
    ("kernel size can't be greater than actual input size", ErrorKind.SHAPE_MISMATCH),
)


def classify(type_name: str, message: str) -> ErrorKind:
    """Name the kind of a foreign error from its type's name and its message."""
    if type_name in {"MemoryError", "OutOfMemoryError"}:
        return ErrorKind.OUT_OF_MEMORY
    text = message.lower()
    for part, kind in _STABLE_PARTS:
        if part in text:
            return kind
    return ErrorKind.OTHER
