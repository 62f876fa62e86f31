"""What the updates were made of: gradients of the other network's loss, of earlier updates, of changed weights."""

from __future__ import annotations

from collections.abc import Iterator

from ganbench.gan.observe.ownership import owners
from ganbench.gan.observe.timeline import Backward, Call, Step, Timeline
from ganbench.gan.observe.wording import at_lines, changed_since, length
from ganbench.record.finding import Finding
from ganbench.record.loop import NETWORKS, UpdateSeen

_OTHER = {"G": "D", "D": "G"}


class Updates:
    """The steps of a timeline with what is to be said of each."""

    def __init__(self, seen: Timeline) -> None:
        self._seen = seen
        self._owner = owners(seen)

    def of_round(self, number: int) -> tuple[UpdateSeen, ...]:
        """The steps of one call, in order."""
        return tuple(self._told(step) for step in self._seen.steps if step.round == number)

    def findings(self) -> Iterator[Finding]:
        """Each thing that is wrong with the gradients of some step, once for each network."""
        for network in NETWORKS:
            steps = [step for step in self._seen.steps if network in step.taken]
            yield from self._contaminated(network, steps)
            yield from self._stale(network, steps)
            yield from self._repeated(network, steps)
            yield from self._empty(network, steps)
        yield from self._not_detached()

    def _told(self, step: Step) -> UpdateSeen:
        fresh = {index for taken in step.taken.values() for index in taken.fresh}
        passes = sorted(fresh | {index for taken in step.taken.values() for index in taken.used})
        lines = dict.fromkeys(self._seen.backwards[index].line for index in passes)
        return UpdateSeen(
            step.label,
            step.line,
            tuple(line for line in lines if line is not None),
            left=bool(fresh & step.left),
            leftover=max((self._leftover(step, network) for network in step.taken), default=0.0),
            repeated=max((_repeated(step, network) for network in step.taken), default=0.0),
            stale=any(self._changed(step, network) for network in step.taken),
            empty=bool(step.taken) and all(taken.empty for taken in step.taken.values()),
        )

    def _foreign(self, step: Step, network: str) -> list[Backward]:
        fresh = step.taken[network].fresh
        return [self._seen.backwards[i] for i in fresh if self._owner.get(i) == _OTHER[network]]

    def _leftover(self, step: Step, network: str) -> float:
        """Length of the other loss's gradient relative to that of the network's own; 0 where either is missing."""
        foreign = {backward.index for backward in self._foreign(step, network)}
        taken = step.taken[network]
        clean = taken.length(set(taken.fresh) - foreign)
        return taken.length(foreign) / clean if foreign and clean else 0.0

    def _contaminated(self, network: str, steps: list[Step]) -> Iterator[Finding]:
        sizes = {step.index: self._leftover(step, network) for step in steps}
        bad = [step for step in steps if sizes[step.index]]
        if bad:
            name, other = NETWORKS[network], NETWORKS[_OTHER[network]]
            lines = [backward.line for step in bad for backward in self._foreign(step, network)]
            yield Finding(
                "gradients-contaminated",
                "warning",
                f"the {name} is stepped on the gradient of the {other}'s loss too",
                f"{_count(bad, steps, network)}: besides its own loss's, its gradient holds that of backward"
                f"{at_lines(lines)}, {length([sizes[step.index] for step in bad])} times as long",
                f"clear the {name}'s gradients before its own backward(), opt_{network.lower()}.zero_grad(): every "
                f"backward() through both networks fills both"
                + ("; show the discriminator fake.detach()" if network == "G" else ""),
            )
            return
        only = [step for step in steps if self._foreign(step, network)]
        if only:
            yield Finding(
                "one-loss-moves-both",
                "note",
                f"the {NETWORKS[network]} is stepped on a gradient that the {NETWORKS[_OTHER[network]]} was stepped on "
                "too, and on no other",
                f"{_count(only, steps, network)}: backward"
                f"{at_lines([b.line for step in only for b in self._foreign(step, network)])}",
                "right with a layer that reverses gradients; else give each network a loss and a backward() of its own",
            )

    def _changed(self, step: Step, network: str) -> list[tuple[Backward, list[Call]]]:
        passes = [self._seen.backwards[index] for index in step.taken[network].fresh]
        found = [(one, one.stale_for(network)) for one in passes if self._owner.get(one.index, network) == network]
        return [(one, calls) for one, calls in found if calls]

    def _stale(self, network: str, steps: list[Step]) -> Iterator[Finding]:
        bad = [step for step in steps if self._changed(step, network)]
        if bad:
            backward, calls = self._changed(bad[0], network)[0]
            yield Finding(
                "gradients-stale",
                "warning",
                f"the {NETWORKS[network]} is stepped on gradients of weights that were changed meanwhile; nothing "
                "raises, since its optimizer does not tell autograd of the change or nothing changed was needed again",
                f"{_count(bad, steps, network)}: backward{at_lines([backward.line])} goes through "
                f"{changed_since(self._seen, calls)}",
                "call the networks again after a step, on new or detached fakes, and make the loss from that; drop "
                "retain_graph=True",
            )

    def _repeated(self, network: str, steps: list[Step]) -> Iterator[Finding]:
        bad = [step for step in steps if step.taken[network].used]
        if bad:
            used = [self._seen.backwards[index].line for step in bad for index in step.taken[network].used]
            sizes = [size for step in bad if (size := _repeated(step, network))]
            amount = f", {length(sizes)} times as long as what is new" if sizes else ", and nothing new"
            yield Finding(
                "zero-grad-missing",
                "warning",
                f"the {NETWORKS[network]} is stepped on gradients that an earlier step of it has used already",
                f"{_count(bad, steps, network)}: those of backward{at_lines(used)}{amount}",
                f"call opt_{network.lower()}.zero_grad() before the backward() of each of its updates, also between "
                "several in one call",
            )

    def _empty(self, network: str, steps: list[Step]) -> Iterator[Finding]:
        bad = [step for step in steps if step.taken[network].empty]
        # One that never gets any is told as a network that does not move.
        if bad and len(bad) < len(steps):
            yield Finding(
                "step-without-gradient",
                "warning",
                f"the {NETWORKS[network]}'s optimizer is stepped without a gradient: with momentum it moves all the "
                "same where gradients are zeros, and it counts as an update",
                f"{_count(bad, steps, network)}: step{at_lines([step.line for step in bad])}",
                "step only after a backward() that reaches this network",
            )

    def _not_detached(self) -> Iterator[Finding]:
        wasted = [
            one
            for one in self._seen.backwards
            if self._owner.get(one.index) == "D" and "G" in one.reached and not self._used_by(one, "G")
        ]
        if wasted:
            yield Finding(
                "fakes-not-detached",
                "note",
                "the discriminator's loss goes backward through the generator too, and those gradients are thrown away",
                f"{len(wasted)} backward passes{at_lines([one.line for one in wasted])}",
                "D(fake.detach()) gives the discriminator the same gradient for less",
            )

    def _used_by(self, backward: Backward, network: str) -> bool:
        taken = [step.taken[network] for step in self._seen.steps if network in step.taken]
        return any(backward.index in (*one.fresh, *one.used) for one in taken)


def _repeated(step: Step, network: str) -> float:
    taken = step.taken[network]
    new = taken.length(set(taken.fresh))
    return taken.length(set(taken.used)) / new if taken.used and new else 0.0


def _count(some: list[Step], steps: list[Step], network: str) -> str:
    return f"{len(some)} of {len(steps)} steps of {network}"
