"""Pictures of one form made into pictures of another: size and channels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

# ITU-R 601-2: the luma that Pillow's `convert("L")` computes as well.
_LUMA = (0.299, 0.587, 0.114)

# Values converted to float at a time: 16 MiB.
_CHUNK = 2**22


@torch.no_grad()
def fit(pictures: Tensor, size: int, channels: int) -> Tensor:
    """Resize to `size` × `size` pixels and convert between one channel and three.

    Bilinear, with antialiasing when pictures shrink; one channel becomes three by repetition, three become
    one by ITU-R 601-2 luma. Works through the pictures in chunks, and rounds once, at the end.

    Args:
        pictures: uint8 (N, 1 or 3, H, W) on the CPU.

    Returns:
        uint8 (N, channels, size, size), contiguous; `pictures` itself when it has that form.
    """
    count, given, height, width = pictures.shape
    if (given, height, width) == (channels, size, size):
        return pictures.contiguous()
    fitted = torch.empty(count, channels, size, size, dtype=torch.uint8)
    step = max(1, _CHUNK // (max(given, channels) * max(height * width, size * size)))
    for start in range(0, count, step):
        chunk = pictures[start : start + step].to(torch.float32)
        if given == 3 and channels == 1:
            weights = torch.tensor(_LUMA).view(1, 3, 1, 1)
            chunk = (chunk * weights).sum(dim=1, keepdim=True)
        if (height, width) != (size, size):
            shrinks = size < max(height, width)
            chunk = functional.interpolate(
                chunk, size=(size, size), mode="bilinear", align_corners=False, antialias=shrinks
            )
        # Assigning (n, 1, ...) to (n, 3, ...) repeats the channel.
        fitted[start : start + step] = chunk.round_().clamp_(0, 255).to(torch.uint8)
    return fitted
