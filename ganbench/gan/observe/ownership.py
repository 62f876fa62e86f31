"""Whose loss a backward pass went through, told by what it reached and which steps used it.

A pass that reached one network alone is that network's. One that reached both and was used by steps of one network is
that one's too: its other gradients were cleared. What is used by steps of both moves a network on the other one's loss:

* it belongs to the network that was stepped on it first;
* where the other network was stepped on nothing else, both losses were made before either step. A single such pass is
  the other network's, if the first one has a pass of its own besides. Of several, those with scores of real data are
  the discriminator's and the others the generator's; where that tells nothing, the last one is the other network's.
"""

from __future__ import annotations

from ganbench.gan.observe.timeline import Step, Timeline

_OTHER = {"G": "D", "D": "G"}


def owners(seen: Timeline) -> dict[int, str]:
    """Index of each backward pass that filled gradients → `G` or `D`; those that no step has used are left out where
    they reached both."""
    first: dict[int, dict[str, Step]] = {backward.index: {} for backward in seen.backwards}
    for step in seen.steps:
        for network, taken in step.taken.items():
            for index in (*taken.fresh, *taken.used):
                first[index].setdefault(network, step)
    owner: dict[int, str] = {}
    bundles: dict[tuple[int, str], list[int]] = {}
    for backward in seen.backwards:
        users = first[backward.index]
        if len(backward.reached) == 1:
            owner[backward.index] = next(iter(backward.reached))
        elif len(users) == 1:
            owner[backward.index] = next(iter(users))
        elif len(users) == 2:
            network = min(users, key=lambda name: users[name].index)
            # One optimizer may hold both networks: then neither was stepped first.
            if users["G"] is users["D"]:
                network = "D" if backward.scored_real else "G"
            bundles.setdefault((users[network].index, network), []).append(backward.index)
    for (_, network), passes in bundles.items():
        owner.update(dict.fromkeys(passes, network))
    for (at, network), passes in bundles.items():
        other = _OTHER[network]
        if not _owned(first[passes[0]][other], other, owner):
            besides = _owned(seen.steps[at], network, owner) - set(passes)
            owner.update(_divided(seen, passes, network, bool(besides)))
    return owner


def _owned(step: Step, network: str, owner: dict[int, str]) -> set[int]:
    return {index for index in step.taken[network].fresh if owner.get(index) == network}


def _divided(seen: Timeline, passes: list[int], network: str, besides: bool) -> dict[int, str]:
    other = _OTHER[network]
    if len(passes) == 1:
        return {passes[0]: other if besides else network}
    real = {index for index in passes if seen.backwards[index].scored_real}
    if 0 < len(real) < len(passes):
        return {index: "D" if index in real else "G" for index in passes}
    return {index: other if index == passes[-1] else network for index in passes}
