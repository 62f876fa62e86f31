"""What a step raised, said in terms of its updates."""

from __future__ import annotations

from collections.abc import Iterator

from ganbench.errors import ErrorKind, classify
from ganbench.gan.observe.timeline import Backward, Timeline
from ganbench.gan.observe.wording import at_lines, changed_since
from ganbench.record.finding import Finding
from ganbench.record.loop import NETWORKS, RoundSeen

_HAPPENED = {
    ErrorKind.NO_PATH: (
        "a loss has no way back to any parameter",
        "make it from outputs that still have their graph: no detach(), no no_grad(), no frozen parameters on the way",
    ),
    ErrorKind.DOUBLE_BACKWARD_UNSUPPORTED: (
        "a gradient of a gradient is asked of an operation that has none",
        "take compilation, or the operation that is named, out of what the gradient penalty goes through",
    ),
    ErrorKind.DONATED_BUFFERS: (
        "a compiled network has given the memory away that a retained graph needs",
        "leave retain_graph=True out and call the network again, or do not compile it",
    ),
    ErrorKind.OUT_OF_MEMORY: ("memory does not suffice for the step", "choose a smaller batch_size"),
    ErrorKind.SHAPE_MISMATCH: (
        "shapes do not fit",
        "compare what the step is given, the experiment's latents and items, with what its networks take",
    ),
}


def raised(seen: Timeline, kind_name: str, message: str, told: str, rounds: list[RoundSeen]) -> Iterator[Finding]:
    """The finding of a step that raised.

    Args:
        kind_name: the exception's class.
        message: its text, by which it is classified.
        told: both in one line, with the line of the user's file.
        rounds: what had happened, the unfinished call last.
    """
    kind = classify(kind_name, message)
    failed = seen.failed
    done = rounds[-1].order if rounds else "-"
    when = f"call {len(rounds)}, after updates {done}: {told}"
    if kind is ErrorKind.GRAPH_FREED and failed is not None:
        yield _second_backward(seen, failed, when)
    elif kind is ErrorKind.MODIFIED_IN_PLACE:
        yield _modified(seen, failed, when)
    else:
        what, advice = _HAPPENED.get(kind, ("the step raises", "call it by hand once and mend what raises"))
        yield Finding("step-raises", "error", f"{what} ({kind})", when, advice)


def _second_backward(seen: Timeline, failed: Backward, when: str) -> Finding:
    networks = {call.network for call, _ in failed.again if call is not None}
    parts = " and ".join(f"the {NETWORKS[network]}'s" for network in NETWORKS if network in networks)
    forward = at_lines(call.line for call, _ in failed.again if call is not None)
    earlier = at_lines(seen.backwards[index].line for _, index in failed.again)
    through = f"{parts} forward pass{forward}" if parts else "a part of the graph"
    if "G" in networks:
        advice = (
            "give the discriminator fake.detach(), or make the generator's fakes anew for each of its updates; "
            "retain_graph=True only moves the error, since a step changes the weights that the kept graph needs"
        )
    else:
        advice = "make the loss from new scores, D(fake) once more: the earlier backward() has used those up"
    return Finding(
        "second-backward",
        "error",
        "a backward pass goes a second time through a graph that an earlier one has freed (graph_freed)",
        f"{when}; backward{at_lines([failed.line])} goes again through {through}, which backward{earlier} has freed",
        advice,
    )


def _modified(seen: Timeline, failed: Backward | None, when: str) -> Finding:
    changed = failed.changed if failed is not None else []
    if not changed:
        return Finding(
            "modified-in-place",
            "error",
            "a backward pass needs a tensor that was edited in place since its forward pass (modified_in_place)",
            when,
            "look for in-place operations on what networks take or give: layers with inplace=True, x += …, x[…] = …",
        )
    names = " and ".join(NETWORKS[network] for network in NETWORKS if network in {call.network for call in changed})
    return Finding(
        "modified-in-place",
        "error",
        f"a backward pass needs weights of the {names} that a step has changed since the forward pass "
        "(modified_in_place)",
        f"{when}; backward{at_lines([failed.line if failed else None])} goes through {changed_since(seen, changed)}",
        "step only after every backward() through these weights, or call the networks again after the step: "
        "D(fake.detach()) for the discriminator, new fakes for the generator; and leave retain_graph=True out",
    )
