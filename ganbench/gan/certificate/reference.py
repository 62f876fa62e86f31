"""The declared gradient of an update, worked out anew: other networks of the same make, set to the weights of that
moment, on the declared inputs, with the random numbers and buffers that the watched forward pass met.

No strategy of the training is used: losses are composed here, and every backward pass is one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ganbench.errors import UsageError
from ganbench.gan.certificate.seen import Batch, Forward, State, Update, same
from ganbench.gan.losses import make_loss
from ganbench.gan.models import build, outputs
from ganbench.gan.session import AUTOCAST
from ganbench.spec.run import RunSpec


class CannotRepeat(Exception):
    """The networks do not give the same output again for the same weights, buffers, inputs and random state."""


class Reference:
    """Both networks and the loss of a spec, in `dtype` (float64, or None for the networks' own).

    `slack`: by how much, relative to its largest element, a repeated output may differ from the watched one.
    `taken`: the networks in training, which these must not be.

    Raises:
        CannotRepeat: the networks cannot be had a second time, or not in that type.
    """

    def __init__(
        self,
        spec: RunSpec,
        shape: tuple[int, ...],
        device: torch.device,
        dtype: torch.dtype | None,
        slack: float,
        taken: Iterable[nn.Module],
    ) -> None:
        self.spec, self.device, self.dtype, self._slack = spec, device, dtype, slack
        self.loss = make_loss(spec.loss)
        g, d = build(spec, shape, on_probabilities=self.loss.on_probabilities)
        own = {id(p) for module in (g, d) for p in module.parameters()}
        if own & {id(p) for module in taken for p in module.parameters()}:
            raise CannotRepeat("the same networks are handed out each time that new ones are made")
        with repeating("making the networks again"):
            modules = nn.ModuleDict({"g": g, "d": d}).to(device=device, dtype=dtype).train()
        self._modules = {name: modules[name] for name in ("g", "d")}
        self._trainable = {name: [p for p in modules[name].parameters() if p.requires_grad] for name in ("g", "d")}
        self._outputs = dict(zip("gd", outputs(spec), strict=True))
        self._autocast = None if dtype is not None else AUTOCAST[spec.precision]

    def generator_gradient(self, update: Update, seen: Sequence[Forward], scale: float = 1.0) -> list[Tensor]:
        """The gradient of the generator's loss on the update's latents. `scale`: the backward pass is that of so many
        times the loss, for types that small gradients do not fit into."""
        self._set(update)
        made = update.made
        if made is not None and made.age == update.ages["g"]:
            self._load("g", made.weights)  # a network may edit its own weights when it is called
        fakes = self._run("g", update.latents, made, update)
        shown = (self.as_fakes(made.output) if made is not None else fakes.detach(), *update.latents[1:])
        scores = self._run("d", (fakes, *update.latents[1:]), scored_by(seen, update, shown), update)
        return self._gradient(self.loss.generator(scores), "g", scale)

    def discriminator_gradient(
        self,
        update: Update,
        fakes: Batch,
        real: Batch,
        mix: Tensor | None,
        seen: Sequence[Forward],
        scale: float = 1.0,
    ) -> list[Tensor]:
        """The gradient of the discriminator's loss on a real batch and on fakes, as values. `mix` (N,): the mixing
        weights of a penalty."""
        self._set(update)
        scores = [self._run("d", batch, scored_by(seen, update, batch), update) for batch in (real, fakes)]
        loss, _, _ = self.loss.discriminator(scores[0], scores[1])
        if mix is not None:

            def critic(between: Tensor) -> Tensor:
                batch = (between, *real[1:])
                return self._run("d", batch, scored_by(seen, update, batch, exact=False), update)

            values = (self._typed(one) for one in (real[0], fakes[0], mix.to(self.device)))
            loss = loss + self.loss.penalty(critic, *values)
        return self._gradient(loss, "d", scale)

    def fakes(self, latents: Batch, weights: State, update: Update, seen: Sequence[Forward]) -> tuple[Batch, bool]:
        """The values that G with these weights makes of latents, and whether they were watched, in which case they
        must repeat; else they are made here."""
        watched = next(
            (one for one in reversed(seen) if one.role == "g" and one.weights is weights and same(one.given, latents)),
            None,
        )
        self._load("g", weights)
        with torch.no_grad():
            made = self._run("g", latents, watched, update, hold=True)
        values = made if watched is None else self.as_fakes(watched.output)
        return (values, *latents[1:]), watched is not None

    def as_fakes(self, output: Tensor) -> Tensor:
        """A generator's output as D is shown it."""
        return output.float() if AUTOCAST[self.spec.precision] is not None else output

    def _set(self, update: Update) -> None:
        for role in ("g", "d"):
            self._load(role, update.weights[role])

    @torch.no_grad()
    def _load(self, role: str, weights: State) -> None:
        for name, parameter in self._modules[role].named_parameters():
            if is_lazy(parameter):
                parameter.materialize(weights[name].shape)
            parameter.copy_(weights[name])

    def _run(self, role: str, batch: Batch, watched: Forward | None, update: Update, *, hold: bool = False) -> Tensor:
        """One forward pass with the buffers and random state of a watched one; held against it where its weights had
        seen as many steps, and where asked for."""
        module = self._modules[role]
        _replace_buffers(module, update.buffers[role] if watched is None else watched.buffers, self.dtype)
        if watched is not None:
            watched.random.restore(self.device)
        with self._cast():
            # Copies of what is kept: a network may edit its input.
            made = module(*(self._typed(one if one.requires_grad else one.clone()) for one in batch))
        pick = self._outputs[role]
        output: Tensor = made if pick is None else pick(made)
        if watched is not None and (hold or watched.age == update.ages[role]):
            self._hold(role, output, watched)
        return self.as_fakes(output) if self._autocast is not None else output

    def _hold(self, role: str, output: Tensor, watched: Forward) -> None:
        there = watched.output.double()
        if output.shape != there.shape:
            raise CannotRepeat(f"the {ROLES[role]}'s output has another shape when it is called again")
        if not bool(torch.isfinite(there).all()):
            raise CannotRepeat(f"the {ROLES[role]}'s output is not finite")
        apart = float((output.detach().double() - there).abs().max()) if there.numel() else 0.0
        if not apart <= self._slack * max(float(there.abs().max()), 1e-12):
            raise CannotRepeat(
                f"the {ROLES[role]} called again with the same weights, buffers, inputs and random numbers gives an "
                f"output that differs by {apart:.2g}"
            )

    def _gradient(self, loss: Tensor, role: str, scale: float) -> list[Tensor]:
        # `backward` rather than `autograd.grad`: reentrant checkpoints know no other.
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        found = []
        for parameter in self._trainable[role]:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            found.append((gradient.to_dense() if gradient.is_sparse else gradient) / scale)
        for module in self._modules.values():
            for parameter in module.parameters():
                parameter.grad = None
        return found

    def _typed(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.dtype) if self.dtype is not None and tensor.is_floating_point() else tensor

    def _cast(self) -> AbstractContextManager[object]:
        return nullcontext() if self._autocast is None else torch.autocast(self.device.type, self._autocast)


ROLES = {"g": "generator", "d": "discriminator"}


@contextmanager
def repeating(what: str) -> Iterator[None]:
    """Whatever a network raises here, such as one that is made for float32 alone, it does not repeat.

    Raises:
        CannotRepeat: it raised.
    """
    try:
        yield
    except (CannotRepeat, UsageError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a network raises
        first = (str(error).splitlines() or [""])[0]
        raise CannotRepeat(f"{what} raised {type(error).__name__}: {first}") from None


def scored_by(seen: Sequence[Forward], update: Update, batch: Batch, *, exact: bool = True) -> Forward | None:
    """The discriminator's pass on these inputs: the update's own one, the first since it was asked for, else the last
    before."""
    like = same if exact else _close
    passes = [n for n, one in enumerate(seen) if one.role == "d" and like(one.given[: len(batch)], batch)]
    own = [n for n in passes if n >= update.since]
    return seen[own[0]] if own else seen[passes[-1]] if passes else None


def _close(one: Batch, other: Batch) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5)
        for a, b in zip(one, other, strict=False)
    )


def _replace_buffers(module: nn.Module, buffers: State, dtype: torch.dtype | None) -> None:
    # By other tensors, not in place: a forward pass before this one may have saved them for its backward. One buffer
    # in several layers stays one.
    new: dict[int, Tensor] = {}
    for name, part in module.named_modules():
        for key, there in part._buffers.items():
            if there is None:
                continue
            value = buffers.get(f"{name}.{key}" if name else key)
            if value is not None and id(there) not in new:
                new[id(there)] = (value.to(dtype) if dtype is not None and value.is_floating_point() else value).clone()
            part._buffers[key] = new.get(id(there), there)
