"""What an error of training means in this schedule, and which strategy or change avoids it: two lines for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from ganbench.errors import ErrorKind
from ganbench.record.events import Ended
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec


@dataclass(frozen=True)
class Advice:
    """`happened`: what went on in this schedule. `remedy`: what to do, beginning with the least change."""

    happened: str
    remedy: str


def explain(kind: ErrorKind, spec: RunSpec) -> Advice:
    """The two lines for an error of that kind in a run of that spec."""
    return _TABLE[kind](spec)


def advice_on(event: Ended, spec: RunSpec) -> Advice | None:
    """The two lines for a run that came to grief by itself; None for any other."""
    kind = event.found.get("error_kind")
    return explain(ErrorKind(kind), spec) if kind and event.outcome in BY_ITSELF else None


def _graph_freed(spec: RunSpec) -> Advice:
    if spec.strategy != "reuse":
        return Advice(
            f"A backward pass in {spec.order_text} went into the graph of an earlier one, which had freed it. "
            f"{spec.strategy} frees no graph that it needs again: a network or a loss keeps a tensor with its graph.",
            "Detach what is kept from one update to the next, such as buffers and running sums; "
            "`ganbench check` names the buffers that carry a graph.",
        )
    if spec.order == "g_first":
        second = "The first D update" if spec.ratio.d > 1 else "The D update"
        first = f"G update {spec.ratio.g} of the round" if spec.ratio.g > 1 else "the G update"
    elif spec.ratio.d > 1:
        second, first = "D update 2 of the round", "D update 1"
    else:
        second, first = "The first G update" if spec.ratio.g > 1 else "The G update", "the D update"
    return Advice(
        f"{second} went backward through the fakes of {first} ({spec.order_text}), whose own backward pass had already "
        "freed their graph.",
        _SEPARATE,
    )


def _modified_in_place(spec: RunSpec) -> Advice:
    if spec.strategy not in _SHARING or spec.order == "d_first":
        # No update steps between a graph's making and its use: it was no optimizer.
        return Advice(
            f"A tensor that a backward pass in {spec.order_text} still needed had been changed in place. "
            f"{spec.strategy} steps no weights that a graph still needs: a layer, a loss or a buffer did it.",
            "Set inplace=False in the layers, and write x = x + y for x += y; "
            "`ganbench check` names layers that edit their input.",
        )
    made = f"G update {spec.ratio.g} of the round" if spec.ratio.g > 1 else "the G update"
    return Advice(
        f"The optimizer stepped G at once, and D's backward pass through the fakes of {made} ({spec.order_text}) "
        "needed the weights that their graph had saved before that step.",
        f"{_SEPARATE} retain_deferred keeps the graph and lets the G step wait.",
    )


def _no_path(spec: RunSpec) -> Advice:
    return Advice(
        f"A loss had no path back to any parameter: somewhere in {spec.order_text} its inputs were detached, made "
        "under no_grad, or made by frozen layers.",
        "Leave the fakes attached for the G update, and at least one layer of each network trainable; "
        "`ganbench check` names frozen and unused parameters.",
    )


def _double_backward(spec: RunSpec) -> Advice:
    what = f"loss {_loss(spec)}" + (" in a compiled network" if spec.compile else "")
    return Advice(
        f"The gradient of a gradient was asked for, by {what}, and an operation on the way has none.",
        "Set compile: false, or choose a loss without gradient penalty (bce, hinge, lsgan); fused attention and "
        "recurrent layers on CUDA have no second gradient either.",
    )


def _donated(spec: RunSpec) -> Advice:
    retaining = spec.strategy in ("retain_deferred", "retain_as_published")
    if not retaining:
        return Advice(
            "The compiled backward pass gave its buffers away, as compilation does, and a graph was wanted again: by "
            f"loss {_loss(spec)}, since {spec.strategy} retains none.",
            "Set compile: false, or choose a loss without gradient penalty (bce, hinge, lsgan).",
        )
    return Advice(
        f"The compiled backward pass gave its buffers away, as compilation does, and the graph that {spec.strategy} "
        "retains was wanted again.",
        "Use a strategy that retains no graph (detach, toggle, inputs), or set compile: false.",
    )


def _out_of_memory(spec: RunSpec) -> Advice:
    return Advice(
        f"Memory ran out with batch_size {spec.batch_size} and strategy {spec.strategy} at {spec.order_text}, on "
        f"{spec.device}.",
        "`ganbench plan --max-batch --memory SIZE` gives the largest batch that fits each arm; detach, toggle and "
        "inputs keep no graph over the round, precision: bf16 halves the activations.",
    )


def _non_finite(spec: RunSpec) -> Advice:
    fp16, probabilities = spec.precision == "fp16", spec.loss == "bce_prob"
    half = " In fp16 every overflow also halves the gradients' scale." if fp16 else ""
    ways = ["lower optimizer.g_lr and optimizer.d_lr"]
    ways += ["use a loss on logits (bce, hinge)"] if probabilities else []
    ways += ["use precision fp32 or bf16"] if fp16 else []
    way = " or ".join(ways)
    return Advice(
        f"A loss or the samples became infinite or NaN in {spec.order_text} with loss {_loss(spec)}, g_lr "
        f"{spec.optimizer.g_lr:g}, d_lr {spec.optimizer.d_lr:g}.{half}",
        f"{way[0].upper()}{way[1:]}; the curves up to the last finite update are kept.",
    )


def _shape_mismatch(spec: RunSpec) -> Advice:
    latent = " × ".join(str(length) for length in spec.latent.shape)
    return Advice(
        f"A layer was given another shape than it is made for; G reads latents of {spec.batch_size} × {latent}, D "
        f"reads {spec.dataset.name}.",
        "`ganbench check` calls both networks with 2 and 3 items and says which shape went wrong; see latent.shape, "
        "dataset.size and dataset.channels.",
    )


def _other(spec: RunSpec) -> Advice:
    return Advice(
        f"Training stopped in {spec.order_text} with strategy {spec.strategy}, by an error or a signal of a kind that "
        "ganbench does not know.",
        "`ganbench check` looks the networks over; the traceback and what was printed are in the run's artifacts.",
    )


BY_ITSELF = (Outcome.RAISED, Outcome.DIVERGED, Outcome.OUT_OF_MEMORY, Outcome.CRASHED)
# Strategies that lead two backward passes through one graph and do nothing about it.
_SHARING = ("reuse", "retain_as_published")
_SEPARATE = "Use detach: D sees fake.detach(); or inputs, toggle: they need no second pass through G's graph."

_TABLE = {
    ErrorKind.GRAPH_FREED: _graph_freed,
    ErrorKind.MODIFIED_IN_PLACE: _modified_in_place,
    ErrorKind.NO_PATH: _no_path,
    ErrorKind.DOUBLE_BACKWARD_UNSUPPORTED: _double_backward,
    ErrorKind.DONATED_BUFFERS: _donated,
    ErrorKind.OUT_OF_MEMORY: _out_of_memory,
    ErrorKind.NON_FINITE: _non_finite,
    ErrorKind.SHAPE_MISMATCH: _shape_mismatch,
    ErrorKind.OTHER: _other,
}


def _loss(spec: RunSpec) -> str:
    return spec.loss if isinstance(spec.loss, str) else spec.loss.name
