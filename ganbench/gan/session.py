"""One run's parts, put together from its spec and its data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ganbench.errors import DatasetError, DeviceUnavailable, UserCodeError
from ganbench.gan.conditional import ConditionalPair
from ganbench.gan.data import BatchStream, Data
from ganbench.gan.labels import LabelledLatents
from ganbench.gan.losses import make_loss
from ganbench.gan.models import build, is_conditional, outputs
from ganbench.gan.pair import Pair
from ganbench.gan.player import Output, Player
from ganbench.gan.schedule import RoundInput, Schedule
from ganbench.gan.strategies import make
from ganbench.gan.streams import Latents, stream
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import STRATEGIES

# What each precision computes in; None: in the parameters' own type.
AUTOCAST = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def device_for(name: str) -> torch.device:
    """The device of that name.

    Raises:
        DeviceUnavailable: there is no CUDA, or not that many devices.
    """
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise DeviceUnavailable(f"device {name} asked for, but torch sees no CUDA device here; use --device cpu")
    device = torch.device(name)
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise DeviceUnavailable(f"device {name} asked for, but there are {torch.cuda.device_count()}")
    return torch.device("cuda", device.index or 0)


class Session:
    """Networks, optimizers, strategy, schedule and streams of one run, ready to play rounds.

    The global random state is seeded here for what models draw from it in training (dropout, noise).
    """

    def __init__(self, spec: RunSpec, data: Data, device: torch.device) -> None:
        self.spec = spec
        self.device = device
        conditional = is_conditional(spec)
        if conditional:
            require_labels(data)
        self.data = (data if conditional else data.without_labels()).to(device)
        loss = make_loss(spec.loss)
        generator, discriminator = build(spec, data.shape, on_probabilities=loss.on_probabilities)
        of_g, of_d = outputs(spec)
        self.pair = (ConditionalPair if conditional else Pair)(
            self._player("g", generator, spec.optimizer.g_lr, of_g),
            self._player("d", discriminator, spec.optimizer.d_lr, of_d),
            loss,
            device,
            autocast=AUTOCAST[spec.precision],
            mixing=stream(spec.seed, "penalty"),
        )
        row = STRATEGIES[spec.strategy]
        if row.attached and self.pair.shared:
            raise UserCodeError(shared_layers(spec.strategy, len(self.pair.shared)))
        self.strategy = make(spec.strategy, self.pair)
        self.schedule = Schedule(spec.ratio, spec.order, spec.real_batches)
        self.batches = BatchStream(self.data, spec.batch_size, stream(spec.seed, "data order"), device)
        self._latents = self._latent_stream("generator")
        # A stream of its own: drawing from it shifts none of the generator's latents.
        self._own_latents = self._latent_stream("discriminator") if row.own_latents else None
        torch.manual_seed(derive_seed(spec.seed, "model noise"))

    def _player(self, name: str, module: nn.Module, lr: float, output: Output | None) -> Player:
        scaler = torch.amp.GradScaler(self.device.type) if self.spec.precision == "fp16" else None
        return Player(
            name,
            _on(self.device, module).train(),
            self.spec.optimizer,
            lr,
            scaler=scaler,
            compiled=self.spec.compile,
            output=output,
        )

    def _latent_stream(self, whose: str) -> Latents | LabelledLatents:
        latent, seed = self.spec.latent, self.spec.seed
        plain = Latents(self.spec.batch_size, latent.shape, latent.distribution, stream(seed, "latents", whose))
        if self.data.labels is None:
            return plain
        return LabelledLatents(plain, torch.arange(self.data.classes), stream(seed, "labels", whose))

    def draw(self) -> RoundInput:
        """Latents and real batches for one round, on the device."""
        schedule, own = self.schedule, self._own_latents
        return RoundInput(
            latents=[self._latents.next(self.device) for _ in range(schedule.g_updates)],
            real=[self.batches.next() for _ in range(schedule.batches)],
            own_latents=[own.next(self.device) if own else None for _ in range(schedule.d_updates)],
        )

    def play_round(self) -> None:
        """Draw and play one round, marking its segments: data, g, g_step, d, d_step."""
        given = self.draw()
        self.pair.mark("data")
        self.schedule.play(self.strategy, given)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors that outlive a round."""
        yield from self.pair.g.tensors()
        yield from self.pair.d.tensors()
        yield self.data.items
        if self.data.labels is not None:
            yield self.data.labels

    @torch.no_grad()
    def samples(self, count: int, latents: torch.Generator, noise_seed: int) -> Tensor:
        """`count` fakes on the CPU in evaluation mode, in batches. Neither the global random state nor any buffer of
        the networks changes; latents come from the generator given. Labels, where there are any, are as frequent as
        in the data."""
        plain = Latents(min(count, 256), self.spec.latent.shape, self.spec.latent.distribution, latents)
        source: Latents | LabelledLatents = plain
        if self.data.labels is not None:
            source = LabelledLatents(plain, self.data.labels, stream(self.spec.seed, "labels", "evaluation"))
        made: list[Tensor] = []
        with _evaluating(self.pair.g.module), torch.random.fork_rng(self._cuda_devices()):
            torch.manual_seed(noise_seed)
            while sum(len(batch) for batch in made) < count:
                made.append(self.pair.sample(source.next(self.device)).float().cpu())
        return torch.cat(made)[:count]

    def _cuda_devices(self) -> list[torch.device]:
        return [self.device] if self.device.type == "cuda" else []

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each network's parameters and buffers, and of both together as `weights`."""
        parts = {player.name: _checksum(player.module) for player in (self.pair.g, self.pair.d)}
        both = hashlib.sha256((parts["g"] + parts["d"]).encode()).hexdigest()
        return {"generator": parts["g"], "discriminator": parts["d"], "weights": both}


def require_labels(data: Data) -> None:
    """Networks that are called with labels need data that have some.

    Raises:
        DatasetError: these have none.
    """
    if data.labels is None:
        raise DatasetError(
            f"model.conditional needs labels, dataset {data.name} has none; its items must be (tensor, whole number "
            "from 0 on), a folder's pictures must lie in one subfolder a class, or set conditional: false"
        )


def shared_layers(strategy: str, count: int) -> str:
    """Why a strategy that shows D attached fakes cannot train networks with layers in common."""
    return (
        f"the networks share {count} parameters, and strategy {strategy} shows D fakes with their graph: its loss "
        "would reach them through the generator too; use detach, toggle, no_grad_replay or no_grad_fresh"
    )


def _on(device: torch.device, module: nn.Module) -> nn.Module:
    # Nothing is moved that is there already: a forecast's networks are fake, and `Module.to` fails on those.
    there = all(tensor.device == device for tensor in (*module.parameters(), *module.buffers()))
    return module if there else module.to(device)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _checksum(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in _named(module):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        plain = tensor.detach().cpu().contiguous()
        digest.update(plain.view(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return digest.hexdigest()


def _named(module: nn.Module) -> Iterable[tuple[str, Tensor]]:
    return sorted([*module.named_parameters(), *module.named_buffers()], key=lambda item: item[0])
