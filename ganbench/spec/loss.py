"""Which loss both players have: a shipped one by its name, or a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from ganbench.spec.place import Argv, Foreign, Place, Sources, is_place
from ganbench.spec.value import Arguments, Flag, unknown

LOSSES = ("bce", "bce_prob", "bce_saturating", "lsgan", "hinge", "wgan_gp")


class UserLossSpec(Foreign):
    """A user's own loss: one place of something that has `generator(fake_scores)` and
    `discriminator(real_scores, fake_scores)`, or a place of a function for each of the two.

    In files and in what is stored, the one place is the loss's `name`.
    """

    PLACES: ClassVar[tuple[str, ...]] = ("place", "generator", "discriminator")

    place: Place | None = Field(default=None, alias="name")
    generator: Place | None = None
    discriminator: Place | None = None
    args: Arguments = Field(default_factory=dict)
    argv: Argv = ()
    # Shipped discriminators end in a sigmoid for it.
    on_probabilities: Flag = False
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_or_a_pair(self) -> UserLossSpec:
        pair = [role for role in ("generator", "discriminator") if getattr(self, role) is not None]
        if self.place is None and len(pair) < 2:
            lacking = "discriminator" if pair == ["generator"] else "generator"
            raise ValueError(f"a loss of your own is a pair of generator and discriminator, or has a name: there is no "
                             f"{lacking}")  # fmt: skip
        if self.place is not None and pair:
            raise ValueError(f"a loss is one place by its name, or a pair, not both; got name and {' and '.join(pair)}")
        if self.args and self.place is None:
            raise ValueError("args are for a loss that is made by one call; the functions of a pair get scores alone")
        return self

    @property
    def name(self) -> str:
        """Its name, or both, as shown in tables."""
        places = (self.place,) if self.place is not None else (self.generator, self.discriminator)
        return "/".join(str(place).rpartition(":")[2] for place in places)


def _parse(given: Any) -> str | UserLossSpec:
    if isinstance(given, UserLossSpec):
        return given
    if isinstance(given, str):
        if given in LOSSES:
            return given
        if is_place(given):
            return UserLossSpec.model_validate({"name": given})
        raise ValueError(unknown("loss", given, LOSSES) + ", or file.py:Name of your own")
    if not isinstance(given, Mapping):
        raise ValueError(f"a loss is a name, or a mapping for your own, got {given!r}; known are {', '.join(LOSSES)}")
    if dict(given).keys() == {"name"} and given["name"] in LOSSES:
        return str(given["name"])
    if given.get("name") is not None and not is_place(given["name"]):
        raise ValueError(unknown("loss", given["name"], LOSSES) + ", without further keys, or file.py:Name of your own")
    return UserLossSpec.model_validate(given)


Loss = Annotated[SerializeAsAny[str | UserLossSpec], PlainValidator(_parse)]
