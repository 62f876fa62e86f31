"""Which networks are trained: the shipped families and their options, or a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, SerializeAsAny

from ganbench.spec.value import Arguments, Count, Flag, Value, unknown


class MlpSpec(Value):
    """Two fully connected networks for pictures of any shape. `batch_norm` puts BatchNorm into G."""

    name: Literal["mlp"] = "mlp"
    hidden: Count = 128
    layers: Count = 2
    batch_norm: Flag = False


class Mlp2dSpec(Value):
    """Two fully connected networks for points in the plane."""

    name: Literal["mlp2d"] = "mlp2d"
    hidden: Count = 128
    layers: Count = 2


class DcganSpec(Value):
    """The convolutional pair of Radford et al. 2016, for 28, 32 and 64 px. `width`: channels of the widest map / 8."""

    name: Literal["dcgan"] = "dcgan"
    width: Count = 64
    batch_norm: Flag = True


class UserModelSpec(Value):
    """A user's own pair: `file.py:Name` or `package.module:Name` for each network."""

    generator: str
    discriminator: str
    generator_args: Arguments = Field(default_factory=dict)
    discriminator_args: Arguments = Field(default_factory=dict)
    # What the named files hold (file name -> SHA-256): an edited network is another model. Filled in at the edge.
    sources: dict[str, str] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """Names of both networks, as shown in tables."""
        return f"{self.generator.rpartition(':')[2]}/{self.discriminator.rpartition(':')[2]}"


SHIPPED: dict[str, type[MlpSpec] | type[Mlp2dSpec] | type[DcganSpec]] = {
    "mlp": MlpSpec,
    "mlp2d": Mlp2dSpec,
    "dcgan": DcganSpec,
}


def _parse(given: Any) -> Value:
    if isinstance(given, Value):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise ValueError(f"a model is a name or a mapping, got '{given}'; known are {', '.join(SHIPPED)}")
    if "generator" in given or "discriminator" in given:
        return UserModelSpec.model_validate(given)
    name = given.get("name")
    if not isinstance(name, str) or name not in SHIPPED:
        raise ValueError(unknown("model", name, SHIPPED) + ", or a mapping with generator and discriminator")
    return SHIPPED[name].model_validate(given)


ModelSpec = Annotated[SerializeAsAny[MlpSpec | Mlp2dSpec | DcganSpec | UserModelSpec], PlainValidator(_parse)]
