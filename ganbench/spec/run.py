"""One run: everything that decides what is trained, and nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ganbench.spec.budget import Budget
from ganbench.spec.dataset import DatasetSpec, PointSpec, UserDatasetSpec, default_samples
from ganbench.spec.loss import Loss
from ganbench.spec.model import MlpSpec, ModelSpec, UserModelSpec
from ganbench.spec.place import Foreign, short_place
from ganbench.spec.ratio import UpdateRatio
from ganbench.spec.strategy import STRATEGIES, Expectation, expectation
from ganbench.spec.training import EvaluateSpec, LatentSpec, OptimizerSpec, Precision
from ganbench.spec.value import Count, Flag, Value, content_hash, unknown

# Bump when the meaning of a spec changes, so that old results are not taken for new ones.
SPEC_VERSION = 1
# Fields that came after the first results: at their defaults they are in no hash, so that those are still found.
_LATER: dict[str, dict[str, Any]] = {
    "model": {"factory": None, "factory_args": {}, "argv": [], "conditional": False, "init": None,
              "output": {"generator": None, "discriminator": None}},
    "optimizer": {"args": {}, "argv": [], "sources": {}},
    "evaluate": {"fid": None},
}  # fmt: skip
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,2})?", re.ASCII)


def _known_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(unknown("strategy", name, [*STRATEGIES, "all", "correct"]))
    return name


def _known_device(name: str) -> str:
    if not _DEVICE.fullmatch(name):
        raise ValueError(f"a device is auto, cpu, cuda or cuda:N, got '{name}'")
    return name


class RunSpec(Value):
    """An arm with a seed. Two specs with the same `run_key` ask for the same training."""

    ratio: UpdateRatio = UpdateRatio(1, 1)
    strategy: Annotated[str, AfterValidator(_known_strategy)] = "detach"
    order: Literal["g_first", "d_first"] = "g_first"
    real_batches: Literal["per_round", "per_d_update"] = "per_round"
    device: Annotated[str, AfterValidator(_known_device)] = "auto"
    model: ModelSpec = MlpSpec()
    dataset: DatasetSpec = Field(default="digits", validate_default=True)
    latent: LatentSpec = LatentSpec(shape=(64,))
    loss: Loss = "bce"
    batch_size: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 64
    optimizer: OptimizerSpec = OptimizerSpec()
    budget: Budget = Budget(1000, "updates")
    evaluate: EvaluateSpec = EvaluateSpec()
    precision: Precision = "fp32"
    compile: Flag = False
    threads: Count = 1
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 0
    # An A/A copy: the same training as the arm without this mark, timed once more to show the machine's noise.
    calibration: Flag = False

    @model_validator(mode="after")
    def _parts_fit(self) -> RunSpec:
        points = isinstance(self.dataset, PointSpec)
        if not isinstance(self.model, UserModelSpec) and not isinstance(self.dataset, UserDatasetSpec):
            if points != (self.model.name == "mlp2d"):
                fitting = "mlp2d" if points else "mlp or dcgan"
                raise ValueError(f"dataset {self.dataset.name} needs model {fitting}, got {self.model.name}")
            if self.model.name == "dcgan" and self.dataset.size not in (28, 32, 64):  # type: ignore[union-attr]
                raise ValueError(
                    f"dcgan is made for 28, 32 or 64 px, got {self.dataset.size} px of "  # type: ignore[union-attr]
                    f"{self.dataset.name}; set dataset.size"
                )
        return self

    @property
    def evaluate_every(self) -> Budget:
        """The distance between evaluations; by default a quarter of the budget."""
        return self.evaluate.every or self.budget.part(4)

    @property
    def evaluate_samples(self) -> int:
        """How many fakes are judged at each evaluation."""
        return self.evaluate.samples or default_samples(self.dataset)

    @property
    def order_text(self) -> str:
        """The realised order of a round's updates, long stretches counted: `G G D`, `G×12 D`."""
        stretches = [("G", self.ratio.g), ("D", self.ratio.d)]
        if self.order == "d_first":
            stretches.reverse()
        return " ".join(f"{name}×{count}" if count > 8 else " ".join([name] * count) for name, count in stretches)

    @property
    def expected(self) -> Expectation:
        """What the table of strategies expects of this run."""
        return expectation(self.strategy, order=self.order, fused=self.optimizer.fused, compiled=self.compile)

    def foreign(self) -> dict[str, Foreign]:
        """The parts that name a user's own code: field -> spec."""
        parts = {field: getattr(self, field) for field in ("model", "dataset", "loss", "optimizer")}
        return {field: part for field, part in parts.items() if isinstance(part, Foreign) and part.places()}

    def content(self) -> dict[str, Any]:
        """What the hashes are made of: all that decides the training, without where files lie on this machine."""
        plain = self.model_dump(mode="json")
        plain["dataset"].pop("root", None)
        if not self.calibration:
            del plain["calibration"]
        for part, defaults in _LATER.items():
            for field, default in defaults.items():
                if field in plain[part] and plain[part][field] == default:
                    del plain[part][field]
        if "fid" in plain["evaluate"]:
            plain["evaluate"]["fid"] = plain["evaluate"]["fid"].rpartition("/")[2]
        for part, spec in self.foreign().items():
            for field, place in spec.places().items():
                *above, last = ("name" if field == "place" else field).split(".")
                (plain[part][above[0]] if above else plain[part])[last] = short_place(place)
        return {"spec": SPEC_VERSION, **plain}

    @property
    def run_key(self) -> str:
        """Content hash of the run: independent of key order, of Python's hash seed and of the machine."""
        return content_hash(self.content())

    @property
    def arm_key(self) -> str:
        """Content hash of the arm: the run without its seed."""
        return content_hash({k: v for k, v in self.content().items() if k != "seed"})

    @property
    def pairing_key(self) -> str:
        """Content hash of what is held equal when arms are compared in a block: the run without its strategy, and
        without the mark of an A/A copy."""
        return content_hash({k: v for k, v in self.content().items() if k not in ("strategy", "calibration")})
