"""The time that discarded gradients take, by a clock that counts what backward passes reach instead of nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from ganbench.execute.discarded import PAIRS, discarded_time
from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.record.memory import share_text
from ganbench.spec.run import RunSpec


def session_of(**fields: Any) -> Session:
    small = {"model": {"name": "mlp", "hidden": 24}, "latent": {"dim": 6}, "batch_size": 8, "device": "cpu"}
    spec = RunSpec.model_validate(small | fields)
    session = Session(spec, load(spec.dataset), torch.device("cpu"))
    session.play_round()
    return session


class CountingClock:
    """A segment lasts one tick for each parameter that a gradient reached in it, and one tick besides."""

    def __init__(self, session: Session) -> None:
        self.reached = 0
        self.windows = 0
        self._segments: list[tuple[str, int]] = []
        for player in (session.pair.g, session.pair.d):
            for parameter in player.trainable:
                parameter.register_post_accumulate_grad_hook(self._count)

    def _count(self, _: torch.Tensor) -> None:
        self.reached += 1

    def start(self) -> None:
        self.windows += 1
        self.reached = 0
        self._segments = []

    def mark(self, segment: str) -> None:
        self._segments.append((segment, 1 + self.reached))
        self.reached = 0

    def stop(self) -> list[tuple[str, int]]:
        return self._segments


@contextmanager
def unchanged(session: Session) -> Iterator[None]:
    yield
    assert not session.pair.g.confined
    assert not session.pair.d.confined
    assert session.pair.notes == []


# The pair has six parameters each. A G update at 3:2 has a segment each for fakes, update and step, a D update two; the
# step that `retain_deferred` puts off has one more.
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("detach", {"g": 1 - (3 * 3 + 18) / (3 * 3 + 36), "d": 0.0}),
        ("retain_deferred", {"g": 1 - (3 * 3 + 1 + 18) / (3 * 3 + 1 + 36), "d": 1 - (2 * 2 + 12) / (2 * 2 + 24)}),
        ("inputs", {"g": 0.0, "d": 0.0}),
        ("toggle", {"g": 0.0, "d": 0.0}),
    ],
)
def test_shares_are_what_the_passes_beyond_the_own_network_take(strategy: str, expected: dict[str, float]) -> None:
    session = session_of(strategy=strategy, ratio="3:2")
    clock = CountingClock(session)
    with unchanged(session):
        found = discarded_time(session, clock)
    assert found == pytest.approx(expected)
    assert clock.windows == 2 * PAIRS


@pytest.mark.parametrize("strategy", ["detach", "retain_deferred", "no_grad_replay"])
def test_confined_rounds_train_the_networks_the_same(strategy: str) -> None:
    one, other = session_of(strategy=strategy, ratio="2:3"), session_of(strategy=strategy, ratio="2:3")
    other.pair.g.confined = other.pair.d.confined = True
    for _ in range(3):
        one.play_round()
        other.play_round()
    assert one.checksums() == other.checksums()


def test_the_networks_are_free_again_where_a_round_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(ratio="2:1")

    def fail() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(session, "play_round", fail)
    with unchanged(session), pytest.raises(RuntimeError, match="no"):
        discarded_time(session, CountingClock(session))


@pytest.mark.parametrize(
    ("share", "text"), [(-0.02, "<1%"), (0.0, "<1%"), (0.009, "<1%"), (0.012, "1%"), (0.25, "25%")]
)
def test_a_share_that_is_lost_in_noise_is_not_a_negative_time(share: float, text: str) -> None:
    assert share_text(share) == text
