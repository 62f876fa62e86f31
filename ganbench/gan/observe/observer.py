"""Observes networks and optimizers by torch's public hooks, which are gone again when the block ends."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ganbench.gan.observe.functions import (
    BACKWARD,
    DEVICE,
    FAKE,
    GRAD,
    REAL,
    SCORED_REAL,
    Functions,
    tag,
    tags_of,
)
from ganbench.gan.observe.gradients import Gradients
from ganbench.gan.observe.graph import Marks, tensors_in, to_be_run
from ganbench.gan.observe.timeline import Backward, Call, Step, Timeline
from ganbench.gan.observe.weights import Weights


class Observer:
    """Writes down what happens to the networks `G` and `D` inside its `with` block.

    Args:
        networks: `G` and `D`.
        file: whose lines are told.
    """

    def __init__(self, networks: Mapping[str, nn.Module], file: str | None) -> None:
        self.seen = Timeline()
        self.weights = Weights(networks)
        self._marks = Marks()
        self._gradients = Gradients(self.weights.own)
        self._functions = Functions(self)
        self._file = file
        self._member = {id(part): name for name, network in networks.items() for part in network.modules()}
        self._shared = {
            id(part) for part in networks["G"].modules() if any(part is other for other in networks["D"].modules())
        }
        self._round = -1
        self._calls: list[Call] = []
        self._in_backward = False
        self._made: list[tuple[str, weakref.ref[Tensor]]] = []
        self._open = ExitStack()

    def __enter__(self) -> Observer:
        for hook in (
            register_module_forward_pre_hook(self._forward_begins),
            register_module_forward_hook(self._forward_ends, with_kwargs=True, always_call=True),
            register_optimizer_step_pre_hook(self._step_begins),
            register_optimizer_step_post_hook(self._step_ends),
        ):
            self._open.callback(hook.remove)
        self._open.callback(self._gradients.close)
        self._open.enter_context(_old_objects_left_alone())
        self._open.enter_context(self._functions)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._open.close()

    def begin_round(self, given: Sequence[Tensor], real: Sequence[Tensor]) -> None:
        """A call of the step begins; it is given these tensors, of which `real` are real items."""
        self._round += 1
        self._calls.clear()
        for tensor in (*given, *real):
            tag(tensor, frozenset({DEVICE, REAL} if any(tensor is one for one in real) else {DEVICE}))

    def end_round(self) -> None:
        """The call is over and what it gave is dropped: what is alive now is kept by the step."""
        with self._quietly():
            gc.collect()
            self._look(None)
            self._gradients.notice_cleared()
        living = [kind for kind, reference in self._made if reference() is not None]
        self.seen.alive_nodes.append(len(self._marks))
        self.seen.alive_tensors.append({kind: living.count(kind) for kind in ("loss", "fake", "score")})

    # -- what the functions tell ------------------------------------------------------------------------------------

    def waited(self, what: str) -> None:
        """Something makes the host wait for the device."""
        self.seen.waits[self._round, what, self._line()] += 1

    def backward(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Make a backward pass, and write down what it goes through and what it fills."""
        if self._in_backward:  # a checkpointed part, inside another pass
            return function(*args, **kwargs)
        # Generators are read once: what was asked for is known before the call.
        args = [list(value) if isinstance(value, Iterator) else value for value in args]
        kwargs = {name: list(value) if isinstance(value, Iterator) else value for name, value in kwargs.items()}
        asked = _asked(function, args, kwargs)
        with self._quietly():
            backward = self._begin(function is not GRAD, **asked)
        self._in_backward = True
        try:
            return function(*args, **kwargs)
        except Exception:
            self.seen.failed = backward
            raise
        finally:
            self._in_backward = False
            with self._quietly():
                self._gradients.end()

    def _begin(
        self, fills: bool, roots: list[Tensor], inputs: list[Tensor] | None, retain: bool, create: bool
    ) -> Backward:
        scored = any(SCORED_REAL in tags_of(root) for root in roots)
        nan = any(bool(root.isnan().any()) for root in roots)
        now = Backward(len(self.seen.backwards), self._round, self._line(), fills, retain and not create, scored, nan)
        self.seen.backwards.append(now)
        self._look(now.line)
        if fills:
            self._made += [("loss", weakref.ref(root)) for root in roots]
        for node in to_be_run(roots, inputs):
            mark = self._marks.put(node, self._round)
            call = mark.call
            if call is not None and call.epoch != self.weights.epochs[call.network] and call not in now.changed:
                now.changed.append(call)
            if mark.freed_by is not None:
                now.again.append((call, mark.freed_by))
            if mark.retained_by is not None:
                self.seen.backwards[mark.retained_by].reused = True
            mark.retained_by, mark.freed_by = (now.index, None) if retain or create else (None, now.index)
        self._gradients.begin(now)
        return now

    # -- hooks ------------------------------------------------------------------------------------------------------

    def _forward_begins(self, module: nn.Module, args: Any) -> None:  # noqa: ARG002 - torch's signature
        network = self._member.get(id(module))
        if network is None or self._in_backward:
            return
        if not self._calls:
            with self._quietly():
                self._look(self._line())
            self._calls.append(Call(network, self._round, self._line(), self.weights.epochs[network]))
            self.seen.forwards[self._round, network] += 1
            return
        above = self._calls[-1]
        same = above.network == network or id(module) in self._shared
        self._calls.append(above if same else Call(network, self._round, above.line, self.weights.epochs[network]))

    def _forward_ends(self, module: nn.Module, args: Any, *further: Any) -> None:
        # Where the forward pass raised, torch leaves the keyword arguments out.
        *kwargs, made = further
        if id(module) not in self._member or self._in_backward or not self._calls:
            return
        call = self._calls.pop()
        with self._quietly():
            self._marks.after_call(made, self._round, call)
            if self._calls:
                return
            # A network may set parameters in its first forward pass.
            self._look(call.line)
            call.epoch = self.weights.epochs[call.network]
            for tensor in tensors_in(made):
                self._say_origin(tensor, call.network, tags_of(*tensors_in((args, kwargs))))

    def _say_origin(self, made: Tensor, network: str, given: frozenset[str]) -> None:
        if network == "G":
            tag(made, frozenset({DEVICE, FAKE}), anew=True)
            self._made.append(("fake", weakref.ref(made)))
            return
        self._made.append(("score", weakref.ref(made)))
        if REAL in given or FAKE not in given:
            tag(made, frozenset({DEVICE, SCORED_REAL}))

    def _step_begins(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        with self._quietly():
            self._look(self._line())
        # A closure makes the gradients inside the step: they are looked at when it is over.
        if not _has_closure(args, kwargs):
            self._write_step(optimizer)

    def _step_ends(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if _has_closure(args, kwargs):
            self._write_step(optimizer)
        with self._quietly():
            self.seen.moved |= set(self._look(self._line()))

    def _write_step(self, optimizer: torch.optim.Optimizer) -> None:
        with self._quietly():
            self._gradients.notice_cleared()
            stepped = [p for group in optimizer.param_groups for p in group["params"]]
            taken = {name: self._gradients.take(name, stepped) for name in self.weights.own}
            held = {id(p) for p in stepped}
            names = [name for name, parameters in self.weights.parameters.items() if held & {*map(id, parameters)}]
            left = {index for name in self.weights.own if name not in names for index in self._gradients.lying_in(name)}
        self.seen.steps.append(
            Step(
                len(self.seen.steps),
                self._round,
                "+".join(names) or "other",
                self._line(),
                {name: one for name, one in taken.items() if one is not None},
                left,
            )
        )

    # ---------------------------------------------------------------------------------------------------------------

    def _look(self, line: int | None) -> list[str]:
        changed = self.weights.look()
        for name in changed:
            self.seen.changes[name, self.weights.epochs[name]] = line
        return changed

    def _line(self) -> int | None:
        """The line of the user's file that is being run."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        before, self._functions.quiet = self._functions.quiet, True
        try:
            yield
        finally:
            self._functions.quiet = before


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """Collections inside go over what was made inside alone: torch's modules are many thousands of objects."""
    ours = gc.get_freeze_count() == 0
    if ours:
        gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()


def _has_closure(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    # The optimizer itself comes first.
    return any(callable(given) for given in (*args[1:], *kwargs.values()))


def _asked(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The roots, inputs and options of a call of one of the three functions."""
    names: tuple[str, ...]
    if function is BACKWARD:
        names = ("roots", "gradient", "retain_graph", "create_graph", "inputs")
    elif function is GRAD:
        names = ("roots", "inputs", "grad_outputs", "retain_graph", "create_graph")
    else:
        names = ("roots", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    roots = next(given[name] for name in ("roots", "tensors", "outputs", "self") if name in given)
    inputs = given.get("inputs")
    return {
        "roots": _listed(roots),
        "inputs": None if inputs is None else _listed(inputs),
        "retain": bool(given.get("retain_graph")),
        "create": bool(given.get("create_graph")),
    }


def _listed(tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    return [one for one in tensors if isinstance(one, Tensor)]
