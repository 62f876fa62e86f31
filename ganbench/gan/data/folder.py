"""`folder`: a user's own pictures, every picture file below one folder."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ganbench.errors import DatasetError
from ganbench.gan.data.files import require_folder, root_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from ganbench.gan.data.data import Data
    from ganbench.spec.dataset import PictureSpec

# No torch at the top: `folder_content` and `has_pictures` are asked where torch must not be imported.

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")
"""What a picture file's name ends with, in any case."""


def load_folder(spec: PictureSpec) -> Data:
    """Every picture below `spec.root`, sorted by relative path.

    Each is turned upright as its EXIF data say, laid on white where it is transparent, cropped to the square
    in its middle, resized (bilinear, antialiased when it shrinks) and converted to `spec.channels`. Of an
    animation, the first frame. Hidden files and folders are passed over, links to folders are not followed.
    Where all pictures lie in subfolders, these are the classes, in the order of their names.

    Raises:
        DatasetError: the folder is missing, may not be read or holds no picture, or a picture cannot be read.
    """
    import numpy as np
    import torch

    from ganbench.gan.data.data import Data

    root = root_of(spec)
    names = [name for name, _ in _listing(root)]
    items = torch.empty(len(names), spec.channels, spec.size, spec.size, dtype=torch.uint8)
    for row, name in enumerate(names):
        picture = _read(root / name, spec.size, spec.channels)
        pixels = torch.from_numpy(np.array(picture, dtype=np.uint8))
        items[row] = pixels.view(spec.size, spec.size, spec.channels).permute(2, 0, 1)
    classes = classes_of(names)
    labels = torch.tensor([classes.index(name.partition("/")[0]) for name in names]) if classes else None
    return Data(spec.name, items, spec.range, labels=labels, classes=len(classes))


def classes_of(names: Sequence[str]) -> list[str]:
    """Names of the subfolders that hold all pictures, sorted; none where a picture lies in the folder itself."""
    if not all("/" in name for name in names):
        return []
    return sorted({name.partition("/")[0] for name in names})


def folder_content(root: str) -> str:
    """What identifies a folder's pictures: SHA-256 over sorted relative names and sizes, its first 16 digits.

    Raises:
        DatasetError: the folder is missing, may not be read, or holds no picture.
    """
    digest = hashlib.sha256()
    for name, size in _listing(Path(root).expanduser()):
        digest.update(os.fsencode(name) + b"\0" + str(size).encode() + b"\n")
    return digest.hexdigest()[:16]


def has_pictures(root: str) -> bool:
    """Whether there is a picture file below `root`; no error if there is no such folder."""
    return next(_picture_files(Path(root), strict=False), None) is not None


def _listing(root: Path) -> list[tuple[str, int]]:
    """Relative path, with `/`, and size in bytes of every picture file, sorted by path."""
    require_folder("folder", root)
    if not root.exists():
        raise DatasetError(
            f"dataset folder: there is no folder '{root}'\nname the folder of your pictures with `--data-root DIR`"
        )
    try:
        found = [(path.relative_to(root).as_posix(), path.stat().st_size) for path in _picture_files(root)]
    except OSError as error:
        raise DatasetError(
            f"dataset folder: '{error.filename}' below '{root}' cannot be read: {error.strerror}\n"
            "make it readable, or name another folder with `--data-root DIR`"
        ) from error
    if not found:
        raise DatasetError(
            f"dataset folder: no picture ({', '.join(SUFFIXES)}) is below '{root}'\n"
            "put pictures there, or name their folder with `--data-root DIR`"
        )
    return sorted(found)


def _picture_files(root: Path, *, strict: bool = True) -> Iterator[Path]:
    """Picture files in the file system's order. `strict`: a folder that cannot be listed is an error."""
    for folder, subfolders, files in os.walk(root, onerror=_raise if strict else None):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in files:
            # A hidden file is no picture of the user's: macOS leaves "._cat.jpg" beside "cat.jpg".
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                path = Path(folder, name)
                if path.is_file():
                    yield path


def _raise(error: OSError) -> NoReturn:
    raise error


def _read(path: Path, size: int, channels: int) -> Image:
    """One picture in its final form, mode "L" or "RGB"."""
    # Slow to import for what does not read files.
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            upright = ImageOps.exif_transpose(opened)
            flat = _eight_bits(upright).convert("RGB" if channels == 3 else "L")
    # What Pillow's decoders raise on damaged files, and its limit on the number of pixels.
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        struct.error,
        zlib.error,
        Image.DecompressionBombError,
    ) as e:
        reason = " ".join(str(e).split()) or type(e).__name__
        raise DatasetError(
            f"dataset folder: picture '{path}' cannot be read: {reason}\nrepair it, or take it out of the folder"
        ) from e
    width, height = flat.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    square = flat.crop((left, top, left + side, top + side))
    return square if side == size else square.resize((size, size), Image.Resampling.BILINEAR)


def _eight_bits(picture: Image) -> Image:
    """Without transparency, and with 16-bit grey values brought down to 8."""
    from PIL import Image

    if picture.has_transparency_data:
        colours = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
    if picture.mode.startswith("I"):
        # Pillow's own conversion cuts everything above 255 off.
        import numpy as np

        grey = np.asarray(picture, dtype=np.float64) / 257
        return Image.fromarray(np.rint(grey).clip(0, 255).astype(np.uint8))
    return picture
