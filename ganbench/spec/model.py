"""Which networks are trained: the shipped families and their options, or a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from ganbench.spec.place import Argv, Foreign, Place, Sources
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


class OutputSpec(Foreign):
    """Which part of a network's output counts: the element of a tuple or list, a key or attribute, or what the
    user's own function `file.py:name` makes of it."""

    PLACES: ClassVar[tuple[str, ...]] = ("generator", "discriminator")

    generator: int | str | None = None
    discriminator: int | str | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, given: Any) -> Any:
        if isinstance(given, int | str) and not isinstance(given, bool):
            return {"generator": given, "discriminator": given}
        return given


class UserModelSpec(Foreign):
    """A user's own pair: `file.py:Name` or `package.module:Name` for each network, or a factory that gives both.

    `argv`: the files' command line, where they are training scripts. `conditional`: the networks are called with
    labels as well, `G(z, y)` and `D(x, y)`. `init`: a function that `apply` is given, as for initial weights.
    """

    PLACES: ClassVar[tuple[str, ...]] = ("generator", "discriminator", "factory", "init")

    generator: Place | None = None
    discriminator: Place | None = None
    generator_args: Arguments = Field(default_factory=dict)
    discriminator_args: Arguments = Field(default_factory=dict)
    factory: Place | None = None
    factory_args: Arguments = Field(default_factory=dict)
    argv: Argv = ()
    conditional: Flag = False
    output: OutputSpec = OutputSpec()
    init: Place | None = None
    # What the named files hold (file name -> SHA-256): an edited network is another model. Filled in at the edge.
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _both_networks(self) -> UserModelSpec:
        given = [role for role in ("generator", "discriminator") if getattr(self, role) is not None]
        if self.factory is not None:
            wrong = [*given, *(f"{role}_args" for role in ("generator", "discriminator") if self._args(role))]
            if wrong:
                raise ValueError(
                    f"a factory gives both networks, got {' and '.join(wrong)} too; leave one out. Its arguments are "
                    "factory_args"
                )
        elif len(given) < 2:
            lacking = next(role for role in ("generator", "discriminator") if role not in given)
            raise ValueError(f"{lacking}: field required; a model of your own names generator and discriminator, or "
                             "a factory that gives both")  # fmt: skip
        elif self.factory_args:
            raise ValueError("factory_args belong to a factory; use generator_args and discriminator_args")
        return self

    def _args(self, role: str) -> dict[str, Any]:
        arguments: dict[str, Any] = getattr(self, f"{role}_args")
        return arguments

    @property
    def name(self) -> str:
        """Names of both networks, or of their factory, as shown in tables."""
        if self.factory is not None:
            return self.factory.rpartition(":")[2]
        return "/".join(str(place).rpartition(":")[2] for place in (self.generator, self.discriminator))

    def places(self) -> dict[str, str]:
        """Field -> place; those of the outputs as `output.generator`."""
        outputs = {f"output.{role}": place for role, place in self.output.places().items()}
        return super().places() | outputs

    def settled(self, places: Mapping[str, str], sources: Mapping[str, str]) -> UserModelSpec:
        """The same with its files by absolute path, and with the hashes of what they hold."""
        outputs = {field.partition(".")[2]: place for field, place in places.items() if "." in field}
        own = {field: place for field, place in places.items() if "." not in field}
        return self.model_copy(
            update={**own, "output": self.output.model_copy(update=outputs), "sources": dict(sources)}
        )


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
    if not {"generator", "discriminator", "factory"}.isdisjoint(given):
        return UserModelSpec.model_validate(given)
    name = given.get("name")
    if not isinstance(name, str) or name not in SHIPPED:
        raise ValueError(unknown("model", name, SHIPPED) + ", or a mapping with generator and discriminator")
    return SHIPPED[name].model_validate(given)


ModelSpec = Annotated[SerializeAsAny[MlpSpec | Mlp2dSpec | DcganSpec | UserModelSpec], PlainValidator(_parse)]
