"""Does what comes out follow what goes in: one fake a latent, one row of scores an item, at any batch size?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ganbench.gan.check.batches import tensor_of
from ganbench.gan.check.normalisation import has_batch_norm
from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding

# Two sizes without a common divisor: what is fixed, or tied to a divisor of the batch, cannot suit both.
_PROBES = (2, 3)
_FURTHER = range(2, 10)

Outcome = Tensor | Finding | Exception


def generator_follows_batch(parts: Parts) -> Iterator[Finding]:
    """One fake a latent, at N = 2, at N = 3, and at the batch size."""
    found = _at_sizes(parts, "generator", parts.fakes)
    yield from _judged(parts, "generator", found, f"latents (N, {_listed(tensor_of(parts.latents(1)).shape[1:])})")


def discriminator_follows_batch(parts: Parts) -> Iterator[Finding]:
    """One row of scores for each real item, at N = 2, at N = 3, and at the batch size."""
    found = _at_sizes(parts, "discriminator", lambda count: parts.scores(parts.real(count)))
    yield from _judged(parts, "discriminator", found, f"real items (N, {_listed(tensor_of(parts.real(1)).shape[1:])})")
    scores = found[parts.batch_size]
    if isinstance(scores, Tensor) and scores.dim() == 2 and scores.shape[1] > 1:
        yield Finding(
            "several-scores",
            "warning",
            f"the discriminator gives {scores.shape[1]} numbers an item; losses average them all as scores",
            f"scores of {parts.batch_size} items have the shape {tuple(scores.shape)}",
            "return one score an item; where these are classes, return the adversarial score alone (output: 0)",
        )


def fakes_are_like_real(parts: Parts) -> Iterator[Finding]:
    """Fakes agree with real items in shape, dtype and device, and the discriminator takes them."""
    made = parts.fakes().detach()
    real, fakes = tensor_of(parts.real(parts.probe)), tensor_of(made)
    differences = [
        (code, f"{part} of real items: {one}, of fakes: {other}", advice)
        for code, part, one, other, advice in (
            ("shape-differs", "shape", tuple(real.shape[1:]), tuple(fakes.shape[1:]),
             "make the generator give the data's shape, or set dataset.size and dataset.channels to the generator's"),
            ("dtype-differs", "dtype", real.dtype, fakes.dtype,
             "let the generator give what it is trained in: no .double() or .half() inside, no other default dtype"),
            ("device-differs", "device", real.device, fakes.device,
             "make tensors inside the generator on its input's device: torch.zeros(…, device=z.device)"),
        )
        if one != other
    ]  # fmt: skip
    try:
        scores = parts.scores(made)
    except Exception as error:  # noqa: BLE001 - whatever a user's network raises is what is looked for
        taken, refusal = False, parts.told("discriminator", error)
    else:
        taken, refusal = True, f"the discriminator takes both, and no error tells of it: scores {tuple(scores.shape)}"
    for code, evidence, advice in differences:
        # Fakes of another shape cannot be held against real items when they are judged.
        runs = taken and code != "shape-differs"
        what = f"fakes and real items differ in {code.partition('-')[0]}"
        yield Finding(code, "warning" if runs else "error", what, f"{evidence}; {refusal}", advice)
    if not differences and not taken:
        yield Finding(
            "discriminator-raises",
            "error",
            "the discriminator takes real items, but not fakes",
            refusal,
            "call both networks by hand on a few items: discriminator(generator(z))",
        )


def _at_sizes(parts: Parts, role: str, call: Callable[[int], Any]) -> dict[int, Outcome]:
    """What comes of each batch size: a tensor, what was wrong with what came, or what was raised."""
    found: dict[int, Outcome] = {}
    for count in sorted({*_PROBES, parts.batch_size}):
        try:
            given = tensor_of(call(count))
        except Exception as error:  # noqa: BLE001 - whatever a user's network raises is what is looked for
            found[count] = error
            continue
        found[count] = given.detach() if isinstance(given, Tensor) else _no_tensor(role, given)
    return found


def _judged(parts: Parts, role: str, found: dict[int, Outcome], given: str) -> Iterator[Finding]:
    at_batch = found[parts.batch_size]
    if isinstance(at_batch, Finding):
        yield at_batch
    elif isinstance(at_batch, Exception):
        yield _raises(parts, role, at_batch, given)
    elif any(isinstance(outcome, Exception) for outcome in found.values()):
        yield _picky(parts, role, found)
    else:
        yield from _rows(role, found)


def _no_tensor(role: str, given: object) -> Finding:
    kind = type(given).__name__
    parts = f" of {', '.join(type(item).__name__ for item in given)}" if isinstance(given, tuple | list) else ""
    return Finding(
        "output-not-a-tensor",
        "error",
        f"the {role} gives a {kind} where a tensor is needed",
        f"a {kind}{parts}",
        "name the part that is meant with output: 0, or an adapter function in your file",
    )


def _raises(parts: Parts, role: str, error: Exception, given: str) -> Finding:
    network, count, message = dict(parts.networks)[role], parts.batch_size, str(error)
    evidence = f"{given}, N = {count}: {parts.told(role, error)}"
    if count == 1 and has_batch_norm(network):
        return Finding(
            "batch-norm-batch-one",
            "error",
            f"BatchNorm in the {role} cannot be trained with one item a batch",
            evidence,
            "set batch_size to at least 2, or replace BatchNorm by a layer that looks at one item at a time",
        )
    if role == "discriminator" and (working := _working(parts, role)):
        return Finding(
            "batch-needs-divisor",
            "error",
            f"the discriminator cannot take batches of {count}",
            f"{evidence}; it takes {_counts(working)}",
            "choose a batch_size that its groups divide",
        )
    if "nbatched" in message or "3D or 4D" in message:
        flat = tensor_of(parts.latents(1)).numel()
        advice = (
            f"convolutions read (N, C, H, W): set latent: {{shape: [{flat}, 1, 1]}}"
            if role == "generator"
            else "convolutions read (N, C, H, W): this network does not take this dataset's items"
        )
    elif "shapes cannot be multiplied" in message:
        advice = (
            "set latent.dim to the width of its first layer"
            if role == "generator"
            else "flatten items first, and give the first layer the width C·H·W of this dataset's items"
        )
    elif "required positional argument" in message:
        advice = "it wants more than one argument: a conditional network needs labels, anything else an adapter"
    else:
        advice = f"call the {role} by hand on such a batch and mend it, or choose latent and dataset that it takes"
    return Finding(f"{role}-raises", "error", f"the {role} does not take what training gives it", evidence, advice)


def _picky(parts: Parts, role: str, found: dict[int, Outcome]) -> Finding:
    """It takes the batch size, but not every other one."""
    failing = [count for count, outcome in found.items() if isinstance(outcome, Exception)]
    first = found[failing[0]]
    assert isinstance(first, Exception)
    working = _working(parts, role)
    taken = f"it takes {_counts([*working, parts.batch_size])}; N = {failing[0]}: {parts.told(role, first)}"
    judged = role == "discriminator" or not _fails(parts, role, parts.evaluation_batch)
    if not judged:
        taken += f"; judging asks for {parts.evaluation_batch} fakes at once"
    if working:
        return Finding(
            "batch-needs-divisor",
            "warning" if judged else "error",
            f"the {role} takes batches of some sizes only",
            taken,
            "statistics over groups need a batch that the groups divide: keep batch_size a multiple of the group",
        )
    return Finding(
        "fixed-batch-size",
        "warning" if judged else "error",
        f"the {role} takes batches of {parts.batch_size} only: the size is written into it",
        taken,
        "take the size from the input: x.size(0), or view(x.size(0), -1)",
    )


def _rows(role: str, found: dict[int, Outcome]) -> Iterator[Finding]:
    rows = {count: _row_count(outcome) for count, outcome in found.items() if isinstance(outcome, Tensor)}
    if all(count == got for count, got in rows.items()):
        return
    unit = "fakes" if role == "generator" else "rows of scores"
    seen = "; ".join(
        f"{count} → {rows[count]} (shape {tuple(outcome.shape)})"
        for count, outcome in found.items()
        if isinstance(outcome, Tensor)
    )
    if role == "generator":
        code, advice = "generator-rows", (
            "latents of the shape (nz, 1, 1) without N are taken as one sample; keep the batch dimension everywhere: "
            "view(x.size(0), …), and latent.shape as the network reads it"
        )  # fmt: skip
    else:
        code, advice = "scores-rows", (
            "end in flatten(1) or view(x.size(0), -1) instead of view(-1, 1): larger pictures than it was made for "
            "give several scores each; for a score a patch keep the map (N, 1, H, W); squeeze(1), not squeeze(), "
            "which drops a batch of one"
        )  # fmt: skip
    yield Finding(code, "warning", f"the number of {unit} does not follow the batch size", seen, advice)


def _row_count(output: Tensor) -> int:
    return output.shape[0] if output.dim() else 0


def _working(parts: Parts, role: str) -> list[int]:
    return [count for count in _FURTHER if count != parts.batch_size and not _fails(parts, role, count)]


@torch.no_grad()
def _fails(parts: Parts, role: str, count: int) -> bool:
    try:
        if role == "generator":
            parts.fakes(count)
        else:
            parts.scores(parts.real(count))
    except Exception:  # noqa: BLE001 - whatever a user's network raises is what is looked for
        return True
    return False


def _counts(counts: list[int]) -> str:
    return "N = " + ", ".join(str(count) for count in sorted(set(counts))) if counts else "no other size tried"


def _listed(shape: torch.Size) -> str:
    return ", ".join(str(length) for length in shape)
