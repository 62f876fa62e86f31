"""The template of a round's updates. A strategy overrides the few places in which it differs.

An update makes its loss, goes backward, discards what reached the idle network, steps, and clears its own gradients:
none outlives its update.
"""

from __future__ import annotations

from torch import Tensor

from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes


class Strategy:
    """How a round keeps the two autograd graphs apart. Never reads the ratio."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    # -- what the schedule calls ------------------------------------------------------------------------------------

    def generate(self, latents: Tensor) -> Fakes:
        """Fakes with their graph, for a generator update."""
        fakes = Fakes(latents, self.pair.generate(latents))
        self.pair.mark("g")
        return fakes

    def fakes_first(self, latents: Tensor) -> Fakes:
        """Fakes that D sees before G is updated on them."""
        return self.generate(latents)

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        """Update G on these fakes."""
        assert fakes.images is not None  # the schedule generates before it updates
        self.before(self.pair.g)
        self.backward(self.pair.generator_loss(fakes.images), self.pair.g)
        self.after(self.pair.g)
        self.pair.mark("g")
        self.step(self.pair.g, put_off=feeds_discriminator)
        self.pair.mark("g_step")

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:
        """Update D on a real batch and fakes."""
        self.before(self.pair.d)
        shown = self.shown(fakes, own_latents)
        self.backward(self.pair.discriminator_loss(real, shown), self.pair.d)
        self.after(self.pair.d)
        self.pair.mark("d")
        self.step(self.pair.d, put_off=False)
        self.pair.mark("d_step")

    def end_round(self) -> None:
        """Nothing was put off."""

    # -- where strategies differ ------------------------------------------------------------------------------------

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002 - some strategies use them
        """The fakes as D sees them."""
        assert fakes.images is not None
        return fakes.images.detach()

    def before(self, player: Player) -> None:
        """Before a player's loss is made."""

    def backward(self, loss: Tensor, player: Player) -> None:
        """Go backward through a player's loss."""
        player.backward(loss)

    def after(self, player: Player) -> None:
        """After a player's backward pass, before its step."""
        self.pair.other(player).discard()

    def step(self, player: Player, *, put_off: bool) -> None:  # noqa: ARG002 - one strategy puts the step off
        """Step a player and clear its gradients; `put_off`: the D updates on these fakes are still to come."""
        player.step()
        player.clear()
