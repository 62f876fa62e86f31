"""The reference: D sees detached fakes, and what reaches the idle network is discarded."""

from __future__ import annotations

from ganbench.gan.strategies.base import Strategy


class Detach(Strategy):
    """The template as it is."""
