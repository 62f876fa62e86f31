"""What a step leaves behind from call to call: networks that stay as they were, graphs that stay alive; and what it
does for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from ganbench.gan.observe.graph import tensors_in
from ganbench.gan.observe.timeline import Timeline
from ganbench.gan.observe.wording import at_lines
from ganbench.record.finding import Finding
from ganbench.record.loop import NETWORKS

# A graph that lives from one call into the next is no growth yet.
_GROWS_OVER = 3


def never_moves(seen: Timeline, epochs: dict[str, int], rounds: int) -> Iterator[Finding]:
    """Networks whose parameters no step has changed."""
    for network, name in NETWORKS.items():
        steps = [step for step in seen.steps if network in step.taken]
        by_hand = not steps and epochs[network] > 0
        if network in seen.moved or by_hand:
            continue
        empty = sum(step.taken[network].empty for step in steps)
        if not steps:
            why = f"none of its parameters was in an optimizer that was stepped; {rounds} calls were observed"
            advice = "observe more calls, --rounds, if it is updated in every n-th only; else step its optimizer"
        elif empty:
            why = f"{len(steps)} steps, {empty} of them without a gradient or with zeros only"
            advice = (
                "make its loss from outputs that still have their graph: no detach(), no no_grad() and no frozen "
                "parameters between it and the loss"
            )
        else:
            why = f"{len(steps)} steps with gradients, and no parameter changed"
            advice = "look at its learning rate, and whether something writes its old weights back"
        yield Finding("network-never-moves", "warning", f"the {name} is not trained: it never moves", why, advice)


def kept_alive(seen: Timeline, step: Callable[..., Any]) -> Iterator[Finding]:
    """Graphs of earlier calls that something still holds."""
    nodes = seen.alive_nodes
    if not nodes or not nodes[-1]:
        return
    last = nodes[-_GROWS_OVER:]
    grows = len(last) == _GROWS_OVER and all(a < b for a, b in pairwise(last))
    held = holders(step)
    if not grows and not held:
        return  # old spectral norm keeps the graph of the last weight, as long as it is the last one
    kinds = [f"{count} {kind}{_plural(kind, count)}" for kind, count in seen.alive_tensors[-1].items() if count]
    evidence = f"graph nodes alive after each call: {', '.join(map(str, nodes))}"
    if kinds:
        evidence += f"; {', '.join(kinds)} of {len(nodes)} calls still alive"
    if held:
        evidence += f"; held by {', '.join(held)}"
    yield Finding(
        "graph-grows" if grows else "graph-kept",
        "warning" if grows else "note",
        "each call's graph stays alive: memory grows with every call"
        if grows
        else "a graph stays alive from one call into the next: memory that the next call could use",
        evidence,
        "keep numbers or detached tensors only: total += loss.detach(), losses.append(loss.detach())",
    )


def _plural(kind: str, count: int) -> str:
    return "" if count == 1 else "es" if kind == "loss" else "s"


def not_a_number(seen: Timeline) -> Iterator[Finding]:
    """Losses that are NaN."""
    bad = [one for one in seen.backwards if one.nan]
    if bad:
        yield Finding(
            "loss-not-finite",
            "warning",
            "a loss is NaN: so is every weight after the next step",
            f"{len(bad)} of {len(seen.backwards)} backward passes, first in call {bad[0].round + 1}: "
            f"backward{at_lines(one.line for one in bad)}",
            "look at the loss on these scores, at the learning rates and at the precision",
        )


def needless_retain(seen: Timeline) -> Iterator[Finding]:
    """`retain_graph=True` whose graph no later pass went through."""
    needless = [one for one in seen.backwards if one.retain and not one.reused]
    if needless:
        asked = sum(one.retain for one in seen.backwards)
        yield Finding(
            "retain-graph-needless",
            "note",
            "retain_graph=True keeps a graph that is never used again",
            f"{len(needless)} of {asked} times: backward{at_lines(one.line for one in needless)}",
            "leave it out: memory is freed earlier, and going backward twice by mistake raises again",
        )


def host_waits(seen: Timeline, device: str) -> Iterator[Finding]:
    """Operations that make the host wait until the device has caught up."""
    if not seen.waits:
        return
    counted: Counter[tuple[str, int | None]] = Counter()
    for (_, what, line), count in seen.waits.items():
        counted[what, line] += count
    shown = [f"{what}{at_lines([line])} ({count})" for (what, line), count in counted.most_common(6)]
    further = f" and {len(counted) - 6} further places" if len(counted) > 6 else ""
    yield Finding(
        "host-waits",
        "note",
        "values are read from the device inside the step: the host waits there until all work before is done"
        + ("" if device == "cuda" else "; it costs nothing on the CPU, where this was observed, but would on CUDA"),
        f"{sum(counted.values())} times in {1 + max(number for number, _, _ in seen.waits)} calls: "
        f"{', '.join(shown)}{further}",
        "keep loss.detach() in a list and read it every n-th call, all at once",
    )


def holders(step: Callable[..., Any]) -> list[str]:
    """Names, of what a step can reach, under which tensors with a graph lie."""
    while isinstance(step, partial):
        step = step.func
    function = getattr(step, "__func__", step)
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    places: dict[str, Any] = {f"`{name}`": value for name, value in getattr(function, "__globals__", {}).items()}
    if code is not None:
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                places[f"`{name}`"] = cell.cell_contents
            except ValueError:  # not bound yet
                continue
    owner = getattr(step, "__self__", None if code is not None else step)
    for holder, value in {"self": owner, "function": function}.items():
        for name, inner in getattr(value, "__dict__", {}).items():
            places[f"`{holder}.{name}`"] = inner
    for place, value in list(places.items()):
        if hasattr(value, "__dict__") and not callable(value) and type(value).__module__ != "builtins":
            places |= {f"{place[:-1]}.{name}`": inner for name, inner in vars(value).items()}
    return [place for place, value in places.items() if any(one.grad_fn is not None for one in tensors_in(value))]
