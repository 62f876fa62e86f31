"""What an output's graph says about the operations that made it."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

Interval = tuple[float, float]

# Operations that only arrange, copy, convert or average what they are given, so that it keeps its bounds; the
# beginnings of their node's names.
_ARRANGING = (
    "AdaptiveAvgPool", "Alias", "AsStrided", "AvgPool", "Clone", "Contiguous", "Expand", "Permute", "Reshape", "Select",
    "Slice", "Squeeze", "ToCopy", "Transpose", "TBackward", "Unsqueeze", "UnsafeView", "Upsample", "View",
)  # fmt: skip
# With a constant they shift or scale what they are given: (x + 1) / 2.
_ARITHMETIC = ("Add", "Div", "Mul", "Rsub", "Sub")

# What the values of an operation's output lie between; the beginnings of its node's name.
_BOUNDS: dict[str, Interval] = {
    "Tanh": (-1.0, 1.0),
    "Sigmoid": (0.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Relu": (0.0, math.inf),
}
# Operations whose output may be any number.
_UNBOUNDED = ("Add", "Addbmm", "Addmm", "Baddbmm", "Bmm", "Convolution", "LeakyRelu", "Linear", "Mean", "Mm", "Mv",
              "Native", "CudnnBatchNorm", "Sum", "MkldnnConvolution", "Sub")  # fmt: skip


def operation(output: Tensor, before: int = 0) -> str:
    """The name of the operation that made a tensor, such as `Sigmoid`, views and copies left out; "" where the graph
    does not say. `before`: so many operations further back."""
    node: Any = output.grad_fn
    while node is not None:
        name = _short(node.name())
        if not node.name().startswith(_ARRANGING):
            if before == 0:
                operands = sum(into is not None for into, _ in node.next_functions)
                return f"{name} of a constant" if name in _ARITHMETIC and operands == 1 else name
            before -= 1
        node = node.next_functions[0][0] if node.next_functions else None
    return ""


def bounds(operation: str) -> Interval | None:
    """What the results of an operation lie between: infinite ends where any number is possible, None where that is
    not known."""
    if operation in _BOUNDS:
        return _BOUNDS[operation]
    return (-math.inf, math.inf) if operation in _UNBOUNDED or operation.startswith("Native") else None


def _short(node: str) -> str:
    """`SigmoidBackward0` -> `Sigmoid`."""
    return node.rpartition("::")[2].partition("Backward")[0]


def spread(values: Tensor) -> Interval:
    """The least and the largest value."""
    low, high = values.detach().float().aminmax()
    return float(low), float(high)
