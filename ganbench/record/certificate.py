"""What was found when a strategy's gradients were held against an independent recomputation. Plain values."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ganbench.errors import ErrorKind
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict

# 1: first version.
SCHEMA_VERSION = 1


class Truth(BaseModel):
    """How one network's gradients, as they lay there at each of its optimizer steps, compare with the declared ones.

    Attributes:
        updates: steps that were looked at.
        untrue: how many of them were made of something else than the declared gradient.
        worst_share: the largest length of what did not belong there, relative to the declared gradient's own length.
        median_share: the median of these over the untrue steps; 0 without any.
        missing: steps in which no gradient was there at all.
    """

    # A share of a gradient that should be zero is infinite: JSON has no number for it.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    updates: int
    untrue: int
    worst_share: float
    median_share: float
    missing: int = 0


class Certificate(BaseModel):
    """The verdict on one strategy at one ratio, with its evidence.

    Attributes:
        verdict: None where it cannot be certified; `reason` then says why.
        reason: what decided, in one sentence.
        rounds: how many were played; fewer than asked for where one raised.
        reference: the type that the declared gradients were recomputed in.
        tolerance: share up to which a gradient counts as the declared one; where the recomputation is in float64 and
            finds more, it is repeated in the networks' own type, which decides. An update that is seen to go through
            stale weights or other batches than the declared ones counts as untrue however small its share.
        truth: by network, `g` and `d`; empty where no step was reached.
        trajectory_difference: the largest absolute difference of any parameter or buffer from those of `detach` after
            the same rounds; 0 is bit-equal, None where one of the two did not get that far.
        exact: whether equal trajectories are expected to the bit (CPU, not compiled). Otherwise `same` asks for true
            gradients on the same fakes, as many random numbers drawn, and an end near that of `detach` relative to the
            way there.
        discarded_gradient_bytes: by phase, gradients computed and discarded in a round.
        discarded_time_share: by phase, the share of its time that these take.
        retained_graph_bytes: what is saved for backward at the D phase's peak and was there before its first update.
    """

    # A share of a gradient that should be zero is infinite: JSON has no number for it.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    schema_version: int = SCHEMA_VERSION
    spec: RunSpec
    strategy: str
    ratio: str
    verdict: Verdict | None
    reason: str
    error_kind: ErrorKind | None = None
    error: str | None = None
    rounds: int
    reference: str = ""
    tolerance: float = 0.0
    truth: dict[str, Truth] = Field(default_factory=dict)
    trajectory_difference: float | None = None
    exact: bool = True
    expected: str = ""
    as_expected: bool = False
    discarded_gradient_bytes: dict[str, int] | None = None
    discarded_time_share: dict[str, float] | None = None
    retained_graph_bytes: int | None = None

    @property
    def text(self) -> str:
        """The verdict in words, with the kind of error where it raised."""
        if self.verdict is None:
            return "cannot be certified"
        return f"raises {self.error_kind}" if self.verdict is Verdict.RAISES else str(self.verdict)
