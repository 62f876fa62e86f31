"""Samples as a picture: a grid of small pictures, or points in the plane."""

from __future__ import annotations

import io
import math

import numpy as np
import torch
from PIL import Image
from torch import Tensor

_EDGE = 360
_GAP = 1


def picture_of(samples: Tensor, value_range: tuple[float, float] | None, centers: Tensor | None = None) -> bytes:
    """A PNG of samples (N, C, H, W) as a square grid, or of points (N, 2) with the modes' centers (K, 2) marked.

    Small pictures are enlarged by whole factors, so that each pixel stays a square. Values outside the range and
    values that are not finite are drawn at its ends.
    """
    image = _grid(samples, value_range or (-1.0, 1.0)) if samples.dim() == 4 else _plane(samples, centers)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=False)
    return buffer.getvalue()


def _grid(samples: Tensor, value_range: tuple[float, float]) -> Image.Image:
    low, high = value_range
    unit = torch.nan_to_num((samples.float() - low) / (high - low), nan=0.0).clamp(0, 1)
    pictures = (unit * 255).round().to(torch.uint8)
    if pictures.shape[1] not in (1, 3):
        pictures = pictures[:, :1]
    count, channels, height, width = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = torch.full(
        (channels, rows * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP), 64, dtype=torch.uint8
    )
    for n, picture in enumerate(pictures):
        top = _GAP + (n // columns) * (height + _GAP)
        left = _GAP + (n % columns) * (width + _GAP)
        sheet[:, top : top + height, left : left + width] = picture
    factor = max(1, _EDGE // sheet.shape[-1])
    array = sheet.permute(1, 2, 0).numpy()
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _plane(points: Tensor, centers: Tensor | None) -> Image.Image:
    """The square that holds the centers with a margin; points outside it are not drawn."""
    reach = 1.5 * float(centers.abs().max()) if centers is not None and len(centers) else 2.0
    canvas = np.full((_EDGE, _EDGE, 3), 255, dtype=np.uint8)

    def place(items: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        kept = items.double()[torch.isfinite(items).all(1)].numpy()
        pixels = np.round((kept / reach + 1) / 2 * (_EDGE - 1)).astype(np.int64)
        pixels[:, 1] = _EDGE - 1 - pixels[:, 1]
        return pixels[((pixels >= 2) & (pixels < _EDGE - 2)).all(1)]

    for x, y in place(points):
        canvas[y - 1 : y + 1, x - 1 : x + 1] = (0, 90, 181)
    if centers is not None:
        for x, y in place(centers):
            canvas[y - 2 : y + 3, x] = canvas[y, x - 2 : x + 3] = (220, 50, 32)
    return Image.fromarray(canvas)
