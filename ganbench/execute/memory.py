"""A run's memory figures, from rounds of their own after training.

torch, and what of ganbench loads it, is imported inside the functions: the parent imports this module too, and never
loads torch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ganbench.record.memory import MIB, LiveMemory, Split

if TYPE_CHECKING:
    from torch import Tensor

    from ganbench.gan.player import Player
    from ganbench.gan.session import Session
    from ganbench.measure import LiveTensorTracker
    from ganbench.measure.gradient_work import GradientWork

ROUNDS = 2


def final_memory(session: Session, rss_peak: int) -> tuple[LiveMemory | None, dict[str, float]]:
    """Live memory and the metrics in MiB; the networks are not used afterwards.

    No live memory of compiled networks: a dispatch mode turns compiled code off, and measures another program.
    """
    from ganbench.measure import cuda_peaks, reset_cuda_peaks

    figures = {"memory/rss_peak_mib": rss_peak / MIB}
    if session.device.type == "cuda":
        reset_cuda_peaks(session.device)
        for _ in range(ROUNDS):
            session.play_round()
        names = {"allocated": "allocated_peak", "reserved": "reserved_peak", "process": "process"}
        for name, value in cuda_peaks(session.device).items():
            figures[f"memory/cuda_{names[name]}_mib"] = value / MIB
    if session.spec.compile:
        return None, figures
    memory = memory_of(session)
    return memory, figures | memory.figures()


def memory_of(session: Session, rounds: int = ROUNDS) -> LiveMemory:
    """Play rounds and find their peaks of live tensors, what these are for, and which gradients nobody used.

    The session must have played a round: optimizers make their state in the first one. Data start a new pass, so that
    the figures do not depend on how long the training was. Discarded gradients are those of the last round, which sees
    what the round before left behind.
    """
    watch = _Watch(session)
    # What reference cycles keep alive must not depend on when Python last looked for them.
    gc.collect()
    looking = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            watch.round()
    finally:
        if looking:
            gc.enable()
    return watch.found(rounds)


class _Watch:
    """A tracker that knows which tensors are what in a round."""

    def __init__(self, session: Session) -> None:
        from ganbench.gan.data import BatchStream
        from ganbench.gan.streams import stream
        from ganbench.measure import LiveTensorTracker
        from ganbench.measure.gradient_work import GradientWork

        self.session = session
        self.tracker: LiveTensorTracker = LiveTensorTracker()
        self.work: GradientWork = GradientWork()
        # Where each round's D phase began: the position of its first segment.
        self._d_began: list[int] = []
        self._d_pending = True
        session.pair.notes.clear()
        spec = session.spec
        session.batches = BatchStream(session.data, spec.batch_size, stream(spec.seed, "data order"), session.device)
        self.tracker.register(session.tensors())
        self._label()

    def round(self) -> None:
        """Play one round, watched."""
        self._d_pending = True
        self.work.take()
        with self._watching():
            self._play()
            self.session.pair.notes.clear()
            self._mark("rest")
        self._label()

    def _play(self) -> None:
        # As Session.play_round does it, with a look at what was drawn.
        from ganbench.gan.labels import tensors_of

        session = self.session
        given = session.draw()
        drawn = [*given.latents, *given.real, *(own for own in given.own_latents if own is not None)]
        self._hold([tensor for one in drawn for tensor in tensors_of(one)])
        session.pair.mark("data")
        session.schedule.play(session.strategy, given)

    def _label(self) -> None:
        """Say what the tensors that outlive a round are for."""
        from ganbench.measure import tensors_held_by
        from ganbench.measure.kinds import Kind

        for player in self._players:
            self.tracker.register([*player.module.parameters(), *player.module.buffers()], Kind.PARAMETERS)
            gradients = [p.grad for p in player.module.parameters() if p.grad is not None]
            self.tracker.register(gradients, Kind.GRADIENTS)
            self.tracker.register(tensors_held_by([], [player.optimizer]), Kind.OPTIMIZER_STATE)
        data = self.session.data
        self._hold([data.items, *([] if data.labels is None else [data.labels])])

    def _hold(self, tensors: list[Tensor]) -> None:
        """These are the run's own: alive whether autograd saves them or not."""
        from ganbench.measure.kinds import Kind

        self.tracker.register(tensors, Kind.OTHER)

    def _mark(self, segment: str) -> None:
        if segment == "d" and self._d_pending:
            self._d_began.append(self.tracker.position)
            self._d_pending = False
        self.tracker.mark(segment)
        self.work.mark(segment)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Take part in what the session does, and leave no trace in it."""
        from ganbench.gan.pair import unmarked

        pair = self.session.pair
        trainable = [p for player in self._players for p in player.trainable]
        pair.mark = self._mark
        pair.on_fakes = lambda fakes: self._hold([fakes])
        for player in self._players:
            player.before_step = lambda player: self.work.used(player.trainable)
            player.before_clear = lambda player: self.work.cleared(player.trainable)
        try:
            with self.work.watching(trainable), self.tracker.watching(trainable), self.tracker:
                yield
        finally:
            pair.mark, pair.on_fakes = unmarked, None
            for player in self._players:
                player.before_step = player.before_clear = None

    def found(self, rounds: int) -> LiveMemory:
        tracker = self.tracker
        peak_of_d = max(("d", "d_step"), key=lambda segment: tracker.peaks[segment])
        moment = tracker.moment(peak_of_d)
        began = max(position for position in self._d_began if position <= moment.position)
        discarded = self.work.take()
        return LiveMemory(
            rounds=rounds,
            segments={segment: Split(**tracker.moment(segment).split()) for segment in tracker.peaks},
            retained_graph_bytes=moment.saved_before(began),
            discarded_gradient_bytes={phase: discarded.get(phase, 0) for phase in ("g", "d")},
        )

    @property
    def _players(self) -> tuple[Player, Player]:
        return self.session.pair.g, self.session.pair.d
