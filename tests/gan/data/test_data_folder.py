"""A user's own pictures: which files, in which order, how they are made to fit, and what cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ganbench.errors import DatasetError
from ganbench.gan.data import Data, folder_content, load, present
from ganbench.spec.dataset import PictureSpec


def spec(root: Path, **form: Any) -> PictureSpec:
    return PictureSpec.model_validate({"name": "folder", "root": str(root), "size": 8, **form})


def plain(path: Path, value: int | tuple[int, ...], mode: str = "L", shape: tuple[int, int] = (8, 8)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, shape, value).save(path)


def first_values(data: Data) -> list[int]:
    return [int(value) for value in data.items[:, 0, 0, 0]]


def test_files_come_sorted_by_relative_path(tmp_path: Path) -> None:
    for number, name in enumerate(["z.png", "b/a.PNG", "b.png", "a/c/x.bmp", "a/b.Gif"]):
        plain(tmp_path / name, 10 * number)
    # a/b.Gif, a/c/x.bmp, b.png, b/a.PNG, z.png
    assert first_values(load(spec(tmp_path))) == [40, 30, 20, 10, 0]


def test_hidden_files_and_other_files_are_passed_over(tmp_path: Path) -> None:
    plain(tmp_path / "a.png", 1)
    plain(tmp_path / ".thumbnails" / "b.png", 2)
    (tmp_path / "._a.png").write_bytes(b"no picture")
    (tmp_path / "a.txt").write_text("no picture")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "broken link.png").symlink_to(tmp_path / "absent")
    assert first_values(load(spec(tmp_path))) == [1]


def test_the_middle_square_is_kept(tmp_path: Path) -> None:
    wide = np.zeros((8, 20), dtype=np.uint8)
    wide[:, 6:14] = 200
    Image.fromarray(wide).save(tmp_path / "wide.png")
    Image.fromarray(wide.T.copy()).save(tmp_path / "tall.png")
    assert (load(spec(tmp_path)).items == 200).all()


def test_colours_and_luma(tmp_path: Path) -> None:
    plain(tmp_path / "red.png", (255, 0, 0), "RGB")
    assert load(spec(tmp_path)).items[0, :, 0, 0].tolist() == [255, 0, 0]
    assert load(spec(tmp_path, channels=1)).items[0, :, 0, 0].tolist() == [76]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_of_png_is_read(tmp_path: Path, mode: str) -> None:
    grey = Image.new("L", (9, 9), 255)
    picture = Image.new("I;16", (9, 9), 65535) if mode == "I;16" else grey.convert(mode)
    picture.save(tmp_path / "white.png")
    for channels in (1, 3):
        assert (load(spec(tmp_path, channels=channels)).items == 255).all()


def test_sixteen_bits_are_scaled_not_cut_off(tmp_path: Path) -> None:
    Image.new("I;16", (8, 8), 128 * 257).save(tmp_path / "grey.png")
    assert (load(spec(tmp_path)).items == 128).all()


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    plain(tmp_path / "a.png", (10, 20, 30, 0), "RGBA")
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([10, 20, 30] * 2)
    palette.save(tmp_path / "b.png", transparency=b"\x00\xff")
    assert (load(spec(tmp_path)).items == 255).all()


def test_photographs_are_turned_upright(tmp_path: Path) -> None:
    half = np.zeros((8, 8), dtype=np.uint8)
    half[:, :4] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # The right of what the camera saw is stored at the top.
    Image.fromarray(half).save(tmp_path / "a.png", exif=exif)
    upright = load(spec(tmp_path)).items[0, 0]
    assert (upright[:4] == 255).all()
    assert (upright[4:] == 0).all()


def test_an_animation_gives_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("L", (8, 8), value) for value in (50, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert first_values(load(spec(tmp_path))) == [50]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda raw: raw[: len(raw) // 2],
    "empty": lambda _raw: b"",
    "text": lambda _raw: b"this is no picture",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "gif", "webp"])
def test_an_unreadable_picture_is_named(tmp_path: Path, suffix: str, damage: str) -> None:
    plain(tmp_path / "good.png", 1)
    bad = tmp_path / "sub" / f"bad.{suffix}"
    bad.parent.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (50, 50, 3), dtype=np.uint8)
    Image.fromarray(noise).save(bad)
    bad.write_bytes(DAMAGES[damage](bad.read_bytes()))
    with pytest.raises(DatasetError) as caught:
        load(spec(tmp_path))
    assert str(bad) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_png_with_wrong_bytes_inside_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    plain(bad, 1, shape=(50, 50))
    raw = bad.read_bytes()
    bad.write_bytes(raw[:40] + bytes(len(raw) - 40))
    with pytest.raises(DatasetError, match=r"bad\.png' cannot be read"):
        load(spec(tmp_path))


def test_a_picture_of_too_many_pixels_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "huge.png", 1, shape=(64, 64))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DatasetError, match=r"huge\.png"):
        load(spec(tmp_path))


def refused(root: Path) -> str:
    """The message, equal for reading and for hashing."""
    with pytest.raises(DatasetError) as loading:
        load(spec(root))
    with pytest.raises(DatasetError) as hashing:
        folder_content(str(root))
    assert str(loading.value) == str(hashing.value)
    assert len(str(loading.value).splitlines()) <= 2
    assert "--data-root DIR" in str(loading.value)
    assert not present(spec(root))
    return str(loading.value)


def test_a_missing_folder(tmp_path: Path) -> None:
    assert f"there is no folder '{tmp_path / 'absent'}'" in refused(tmp_path / "absent")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert f"no picture (.bmp, .gif, .jpeg, .jpg, .png, .webp) is below '{tmp_path}'" in refused(tmp_path)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    plain(tmp_path / "a.png", 1)
    assert f"'{tmp_path / 'a.png'}' is a file, not a folder" in refused(tmp_path / "a.png")


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "a.png", 1)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(DatasetError, match="may not be read\n"):
        load(spec(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_subfolder_that_may_not_be_read(tmp_path: Path) -> None:
    plain(tmp_path / "a.png", 1)
    plain(tmp_path / "closed" / "b.png", 1)
    (tmp_path / "closed").chmod(0)
    with pytest.raises(DatasetError, match="closed"):
        load(spec(tmp_path))
    (tmp_path / "closed").chmod(0o700)


def test_the_error_of_a_subfolder_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "a.png", 1)
    scandir = os.scandir
    (tmp_path / "closed").mkdir()

    def refuse(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert present(spec(tmp_path))
    with pytest.raises(DatasetError, match=r"closed' below .* cannot be read: Permission denied"):
        load(spec(tmp_path))


def test_content_tells_folders_apart_and_nothing_else(tmp_path: Path) -> None:
    plain(tmp_path / "one" / "a.png", 1)
    plain(tmp_path / "one" / "sub" / "b.png", 2)
    plain(tmp_path / "two" / "sub" / "b.png", 2)
    plain(tmp_path / "two" / "a.png", 1)
    content = folder_content(str(tmp_path / "one"))
    assert len(content) == 16
    assert int(content, 16) >= 0
    assert folder_content(str(tmp_path / "two")) == content
    (tmp_path / "two" / "notes.txt").write_text("no picture")
    assert folder_content(str(tmp_path / "two")) == content
    (tmp_path / "two" / "a.png").rename(tmp_path / "two" / "c.png")
    assert folder_content(str(tmp_path / "two")) != content
    (tmp_path / "one" / "a.png").write_bytes(b"shorter")
    assert folder_content(str(tmp_path / "one")) != content


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(tmp_path / "mine" / "a.png", 7)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert first_values(load(spec(Path("~/mine")))) == [7]
    assert present(spec(Path("~/mine")))
    assert folder_content("~/mine") == folder_content(str(tmp_path / "mine"))


def test_the_folder_s_pictures_have_the_same_values_as_pillow_s(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    assert torch.equal(load(spec(tmp_path, size=20)).items[0], torch.from_numpy(noise).permute(2, 0, 1))
