"""Which pictures or points are learned, and in which form they reach the networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PlainValidator, SerializeAsAny, model_validator

from ganbench.spec.place import Argv, Foreign, Place, Sources, is_place, short_place
from ganbench.spec.value import Arguments, Count, Value, unknown


@dataclass(frozen=True)
class DatasetFacts:
    """What a shipped dataset offers without being asked: its native form, and how many fakes judge it."""

    size: int
    channels: int
    samples: int
    summary: str


# One row a dataset of pictures. `samples`: how many fakes are held against as many real pictures (at most half).
PICTURES: dict[str, DatasetFacts] = {
    "digits": DatasetFacts(8, 1, 898, "1797 real handwritten digits of 8×8 pixels; needs no network"),
    "mnist": DatasetFacts(28, 1, 2000, "60000 handwritten digits"),
    "fashion_mnist": DatasetFacts(28, 1, 2000, "60000 pictures of clothes"),
    "kmnist": DatasetFacts(28, 1, 2000, "60000 handwritten Kuzushiji characters"),
    "cifar10": DatasetFacts(32, 3, 2000, "50000 small colour photographs"),
    "folder": DatasetFacts(64, 3, 2000, "your own pictures: every picture file below `root`"),
}
POINTS: dict[str, DatasetFacts] = {
    "ring8": DatasetFacts(2, 0, 2500, "eight Gaussians on a circle of radius 1"),
    "grid25": DatasetFacts(2, 0, 2500, "25 Gaussians on a 5×5 grid from -4 to 4"),
}


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if not -math.inf < pair[0] < pair[1] < math.inf:
        raise ValueError(
            f"a range is [low, high] with low < high, both finite, got {list(pair)}; the default is [-1, 1]"
        )
    return pair


Range = Annotated[tuple[float, float], AfterValidator(_ordered)]


class PictureSpec(Value):
    """Pictures, scaled to `size` × `size` pixels, `channels` and `range`; by default in their native form."""

    name: Literal["digits", "mnist", "fashion_mnist", "kmnist", "cifar10", "folder"]
    size: Annotated[int, Field(strict=True, ge=4, le=1024)]
    channels: Literal[1, 3]
    range: Range = (-1.0, 1.0)
    # Where the files lie on this machine. Not part of any content hash.
    root: str = "data"
    # Names and sizes of a folder's files, hashed: another folder is another dataset. Filled in at the edge.
    content: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _native_form(cls, given: Any) -> Any:
        facts = PICTURES.get(str(given.get("name"))) if isinstance(given, Mapping) else None
        return {"size": facts.size, "channels": facts.channels, **given} if facts else given


class PointSpec(Value):
    """Points in the plane from a known mixture of Gaussians."""

    name: Literal["ring8", "grid25"]
    points: Count = 20000


class UserDatasetSpec(Foreign):
    """A user's own data: `file.py:Name` of a torch Dataset, a tensor, or what gives one when it is called.

    In files and in what is stored, the place is the dataset's `name`.
    """

    PLACES: ClassVar[tuple[str, ...]] = ("place",)

    place: Place = Field(alias="name")
    args: Arguments = Field(default_factory=dict)
    argv: Argv = ()
    # What pictures' values lie in; None: judged by the data. Bytes are scaled to it.
    range: Range | None = None
    sources: Sources = Field(default_factory=dict)
    # Hash of the items themselves: other items are another dataset. Filled in once they have been read.
    content: str | None = None

    @property
    def name(self) -> str:
        """The place without its folder."""
        return short_place(self.place)


AnyDataset = PictureSpec | PointSpec | UserDatasetSpec
# How many fakes judge a dataset of which nothing is known, where it has twice as many items.
_SAMPLES = 2000


def parse_dataset(given: Any) -> AnyDataset:
    """Read a name, a place of the user's own code, or a mapping with either as its name.

    Raises:
        ValueError: no such dataset, or a key that it has not.
    """
    if isinstance(given, AnyDataset):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise ValueError(f"a dataset is a name or a mapping with a name, got '{given}'")
    name = given.get("name")
    if isinstance(name, str) and name in PICTURES:
        return PictureSpec.model_validate(given)
    if isinstance(name, str) and name in POINTS:
        return PointSpec.model_validate(given)
    if is_place(name):
        return UserDatasetSpec.model_validate(given)
    raise ValueError(unknown("dataset", name, [*PICTURES, *POINTS]) + ", or file.py:Name of your own")


DatasetSpec = Annotated[SerializeAsAny[AnyDataset], PlainValidator(parse_dataset)]


def default_samples(dataset: AnyDataset) -> int:
    """How many fakes judge this dataset when the experiment does not say."""
    facts = (PICTURES | POINTS).get(dataset.name)
    return facts.samples if facts else _SAMPLES
