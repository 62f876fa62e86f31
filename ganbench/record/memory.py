"""What live memory a run needs and what for: bytes, measured in rounds of their own or forecast. Plain values."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MIB = 2**20


def share_text(share: float) -> str:
    """A measured share of time in words; one that is lost in noise, below it too, is less than a hundredth."""
    return "<1%" if share < 0.01 else f"{share:.0%}"


class Split(BaseModel):
    """Bytes of live tensors at one moment by what they are for; each storage stands in one place.

    `parameters` with buffers; `gradients` that are, or in this round become, some parameter's; `optimizer_state`;
    `saved_for_backward`: what is alive only because an autograd graph saved it; `other`: the dataset, latents, real
    batches and fakes (the round itself holds these, saved or not), and temporaries.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    saved_for_backward: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(dict(self).values())


class LiveMemory(BaseModel):
    """Live tensors' peaks over some rounds.

    Attributes:
        rounds: how many were watched.
        segments: for each of a round's segments (data, g, g_step, d, d_step, rest) its peak's split.
        retained_graph_bytes: part of `saved_for_backward` at the D phase's peak: what was saved before the round's
            first D update began. With G first: the generator's graph that is kept for the D updates, 0 where they see
            detached fakes or the graph was freed. With D first: the graph of the fakes that G is updated on later,
            which every strategy that makes them first holds, `detach` included.
        discarded_gradient_bytes: for the G and the D phase of a round, bytes of gradients that were computed and then
            cleared without an optimizer step having used them. Exact sizes, not rounded to the allocator's grain.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int
    segments: dict[str, Split]
    retained_graph_bytes: int
    discarded_gradient_bytes: dict[str, int]

    @property
    def peak_bytes(self) -> int:
        """Most bytes live at once."""
        return max(split.total for split in self.segments.values())

    def phase(self, player: str) -> Split:
        """The split at the peak of the G or the D phase (`g` or `d`), its optimizer steps included."""
        parts = [self.segments[name] for name in (player, f"{player}_step") if name in self.segments]
        return max(parts, key=lambda split: split.total)

    def figures(self) -> dict[str, float]:
        """As final metrics."""
        return {
            "memory/live_peak_mib": self.peak_bytes / MIB,
            "memory/live_peak_mib_g_phase": self.phase("g").total / MIB,
            "memory/live_peak_mib_d_phase": self.phase("d").total / MIB,
        }
