"""One network with its optimizer: clearing gradients, stepping, and counting the steps that really happened."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ganbench.errors import UserCodeError
from ganbench.gan.foreign.names import named
from ganbench.gan.foreign.telling import told
from ganbench.spec.place import is_place
from ganbench.spec.training import OptimizerSpec

Network = Callable[..., Any]
# From what a network gives to the tensor that is meant.
Output = Callable[[Any], Tensor]


def optimizer_for(spec: OptimizerSpec, parameters: list[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """The optimizer of one network. `foreach` None leaves the choice to torch.

    Raises:
        UserCodeError: a user's own cannot be made.
    """
    if is_place(spec.name):
        return _users_optimizer(spec, parameters, lr)
    common: dict[str, Any] = {"lr": lr, "weight_decay": spec.weight_decay, "foreach": spec.foreach}
    if spec.name in ("adam", "adamw"):
        kind = torch.optim.Adam if spec.name == "adam" else torch.optim.AdamW
        return kind(parameters, betas=spec.betas or (0.5, 0.999), fused=spec.fused or None, **common)
    if spec.name == "sgd":
        return torch.optim.SGD(parameters, momentum=spec.momentum or 0.0, fused=spec.fused or None, **common)
    return torch.optim.RMSprop(parameters, momentum=spec.momentum or 0.0, **common)


def _users_optimizer(spec: OptimizerSpec, parameters: list[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    make, (where, _, name) = named(spec.name, "optimizer", spec.argv), spec.name.rpartition(":")
    try:
        optimizer = make(parameters, lr=lr, **spec.args)
    except (Exception, SystemExit) as error:
        listed = ", ".join(["parameters", f"lr={lr}", *(f"{key}={value!r}" for key, value in spec.args.items())])
        raise UserCodeError(f"optimizer: {name}({listed}) of '{where}' raised {told(error, where)}") from error
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise UserCodeError(
            f"optimizer: {name}(…) gave a {type(optimizer).__name__}; a torch.optim.Optimizer is needed"
        )
    return optimizer


def _as_it_is(made: Any) -> Any:
    return made


def _picked(network: Network, output: Output) -> Network:
    def call(*given: Tensor) -> Tensor:
        return output(network(*given))

    return call


class Player:
    """A network, its optimizer and, for fp16, its gradient scaler.

    Each player has a scaler of its own: one `update()` belongs to each step, and neither network's overflow touches
    the other's scale.
    """

    def __init__(
        self,
        name: str,
        module: nn.Module,
        optimizer: OptimizerSpec,
        lr: float,
        *,
        scaler: torch.amp.GradScaler | None = None,
        compiled: bool = False,
        output: Output | None = None,
    ) -> None:
        self.name = name
        self.module = module
        network: Network = torch.compile(module, dynamic=False) if compiled else module
        self.network = network if output is None else _picked(network, output)
        self.output: Output = output or _as_it_is
        self.trainable = [p for p in module.parameters() if p.requires_grad]
        # Those that the other network does not hold too.
        self.exclusive = self.trainable
        self.optimizer = optimizer_for(optimizer, self.trainable, lr)
        self.scaler = scaler
        self.before_step: Callable[[Player], None] | None = None
        # Told of gradients that are about to be dropped: memory rounds count those that no step has used.
        self.before_clear: Callable[[Player], None] | None = None
        # Backward goes to this network's own parameters alone, whatever is asked: shows what the rest of it costs.
        self.confined = False
        self._one = torch.ones((), device=self.trainable[0].device) if scaler and self.trainable else None
        self._scales: list[Tensor] = []
        self._scale = 0.0
        if scaler is not None and self._one is not None:
            self._scale = float(scaler.scale(self._one))

    def clear(self) -> None:
        """Drop this network's gradients."""
        if self.before_clear is not None:
            self.before_clear(self)
        # What `optimizer.zero_grad(set_to_none=True)` does, without the profiler's marks, which cost more than that.
        for parameter in self.trainable:
            parameter.grad = None

    def discard(self) -> None:
        """Drop the gradients that reached this network while it was idle. What it shares with the other one belongs
        to the other one's update too, and stays."""
        if self.exclusive is self.trainable:
            self.clear()
            return
        if self.before_clear is not None:
            self.before_clear(self)
        for parameter in self.exclusive:
            parameter.grad = None

    def backward(self, loss: Tensor, *, retain_graph: bool = False, inputs: list[nn.Parameter] | None = None) -> None:
        """Backward through this network's loss, scaled where there is a scaler."""
        scaled = loss if self.scaler is None else self.scaler.scale(loss)
        if self.confined:
            inputs = self.trainable
        scaled.backward(retain_graph=retain_graph, inputs=inputs)  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """One optimizer step on the gradients that lie there now."""
        if self.before_step is not None:
            self.before_step(self)
        if self.scaler is None:
            self.optimizer.step()
            return
        self.scaler.step(self.optimizer)
        self.scaler.update()
        # The scale as a device tensor: asking for its number here would synchronise.
        self._scales.append(self.scaler.scale(self._one))  # type: ignore[arg-type]

    def steps_taken(self, asked: int) -> list[bool]:
        """For each of the last `asked` steps whether it happened; an overflowed step lowers the scale."""
        if self.scaler is None:
            return [True] * asked
        scales = [self._scale, *(torch.stack(self._scales).tolist() if self._scales else [])]
        self._scales.clear()
        self._scale = scales[-1]
        return [after >= before and after > 0 for before, after in itertools.pairwise(scales)][:asked]

    @property
    def scale_lost(self) -> bool:
        """True where every overflow halved the scale until nothing was left: no step can happen any more."""
        return self.scaler is not None and bool(self.trainable) and self._scale == 0

    def grad_norm(self) -> float:
        """The 2-norm of all gradients together, unscaled. Synchronises: not for timed rounds."""
        gradients = [p.grad for p in self.trainable if p.grad is not None]
        if not gradients:
            return 0.0
        norm = float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in gradients])))
        scale = self.scaler.get_scale() if self.scaler is not None else 1.0
        return norm / scale if scale else math.nan

    def tensors(self) -> Iterator[Tensor]:
        """Parameters, buffers, gradients and optimizer state: all that outlives a round."""
        for parameter in self.module.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
        yield from self.module.buffers()
        for state in self.optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))
