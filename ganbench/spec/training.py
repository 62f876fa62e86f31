"""How the networks are trained and judged: latents, optimizers, evaluation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from ganbench.spec.budget import Budget
from ganbench.spec.place import Argv, Foreign, Sources, is_place
from ganbench.spec.value import Arguments, Count, Flag, Rate, Value, unknown

OPTIMIZERS = ("adam", "adamw", "rmsprop", "sgd")
Precision = Literal["fp32", "bf16", "fp16"]


class LatentSpec(Value):
    """What goes into the generator: `dim` numbers, or a `shape` such as [100, 1, 1]."""

    shape: Annotated[tuple[Count, ...], Field(min_length=1)]
    distribution: Literal["normal", "uniform"] = "normal"

    @model_validator(mode="before")
    @classmethod
    def _dim_is_short_for_shape(cls, given: Any) -> Any:
        if isinstance(given, dict) and "dim" in given:
            if "shape" in given:
                raise ValueError("give a latent's dim or its shape, not both")
            given = {**given, "shape": [given["dim"]]}
            del given["dim"]
        return given

    @property
    def dim(self) -> int:
        """How many numbers a latent holds."""
        product = 1
        for length in self.shape:
            product *= length
        return product


def _betas(pair: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= beta < 1 for beta in pair):
        raise ValueError(f"betas are two numbers in [0, 1), got {list(pair)}")
    return pair


class OptimizerSpec(Foreign):
    """The two optimizers. `betas` belong to adam and adamw, `momentum` to sgd and rmsprop.

    `name` may be a place of the user's own code, which is called as `make(parameters, lr=…, **args)`.
    """

    PLACES: ClassVar[tuple[str, ...]] = ("name",)

    name: str = "adam"
    g_lr: Rate = 2e-4
    d_lr: Rate = 2e-4
    betas: Annotated[tuple[float, float], AfterValidator(_betas)] | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    fused: Flag = False
    foreach: Flag | None = None
    args: Arguments = Field(default_factory=dict)
    argv: Argv = ()
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_name(cls, given: Any) -> Any:
        # Spelled out, so that leaving a default away and writing it down are the same run.
        if isinstance(given, str):
            given = {"name": given}
        if isinstance(given, dict) and not is_place(given.get("name")):
            adaptive = given.get("name", "adam") in ("adam", "adamw")
            given = {**({"betas": (0.5, 0.999)} if adaptive else {"momentum": 0.0}), **given}
        return given

    @model_validator(mode="after")
    def _options_fit(self) -> OptimizerSpec:
        if is_place(self.name):
            return self._options_of_a_users()
        if self.name not in OPTIMIZERS:
            raise ValueError(unknown("optimizer", self.name, OPTIMIZERS) + ", or file.py:make of your own")
        adaptive = self.name in ("adam", "adamw")
        if self.betas is not None and not adaptive:
            raise ValueError(f"betas belong to adam and adamw, got them with {self.name}; use momentum")
        if self.momentum is not None and adaptive:
            raise ValueError(f"momentum belongs to sgd and rmsprop, got it with {self.name}; use betas")
        if self.fused and self.name == "rmsprop":
            raise ValueError("torch has no fused rmsprop; set fused: false")
        if self.fused and self.foreach:
            raise ValueError("an optimizer is fused or foreach, not both")
        if self.args or self.argv:
            raise ValueError(f"args and argv are for an optimizer of your own, got them with {self.name}")
        return self

    def _options_of_a_users(self) -> OptimizerSpec:
        given = {"betas": self.betas, "momentum": self.momentum, "weight_decay": self.weight_decay,
                 "fused": self.fused, "foreach": self.foreach}  # fmt: skip
        wrong = [name for name, value in given.items() if value not in (None, False, 0)]
        if wrong:
            raise ValueError(
                f"{' and '.join(wrong)} belong to shipped optimizers; what your own takes besides parameters and lr "
                f"stands in args: {{{wrong[0]}: …}}"
            )
        return self


class EvaluateSpec(Value):
    """When and on how many fakes the generator is judged. Left out: four times a run, the dataset's own number."""

    every: Budget | None = None
    samples: Annotated[int, Field(strict=True, ge=50)] | None = None
    # A file of Inception weights: the FID is measured too.
    fid: Annotated[str, Field(min_length=1)] | None = None
