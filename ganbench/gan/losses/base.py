"""What a loss must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor

Critic = Callable[[Tensor], Tensor]


class AdversarialLoss(ABC):
    """Losses of both players from D's scores of any shape (N, …); each result is a scalar mean over all scores."""

    on_probabilities = False
    """D must end in a sigmoid."""

    needs_penalty = False
    """The D loss has a further term, `penalty`."""

    in_parts = True
    """The D loss is the sum of one part for real data and one for fakes. Where it is not, these two do not exist."""

    @abstractmethod
    def generator(self, fake_scores: Tensor) -> Tensor:
        """The generator's loss."""

    @abstractmethod
    def real(self, real_scores: Tensor) -> Tensor:
        """The part of the discriminator's loss that real data makes."""

    @abstractmethod
    def fake(self, fake_scores: Tensor) -> Tensor:
        """The part of the discriminator's loss that fakes make."""

    def discriminator(self, real_scores: Tensor, fake_scores: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The discriminator's loss without its penalty, and its parts for real data and fakes, where it has them."""
        real, fake = self.real(real_scores), self.fake(fake_scores)
        return real + fake, real, fake

    def penalty(self, critic: Critic, real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
        """A further term of the discriminator's loss; `mix` (N,) in [0, 1) chooses points between real and fake."""
        raise NotImplementedError
