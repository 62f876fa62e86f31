"""What is said of an error names the update that raised it, in rounds that are really played."""

from __future__ import annotations

import pytest
import torch

from ganbench.errors import classify
from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.gan.strategies.base import Strategy
from ganbench.record.advice import explain
from ganbench.spec.run import RunSpec


@pytest.mark.parametrize("ratio", ["1:1", "3:1", "1:3", "2:3"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", ["reuse", "retain_as_published"])
def test_the_update_named_is_the_one_that_raised(
    strategy: str, order: str, ratio: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = RunSpec.model_validate({"strategy": strategy, "order": order, "ratio": ratio, "device": "cpu"})
    session = Session(spec, load(spec.dataset), torch.device("cpu"))
    begun = {"G": 0, "D": 0}
    last = ""
    updates = {"G": Strategy.generator_update, "D": Strategy.discriminator_update}

    def counted(name: str, update: object) -> object:
        def play(self: Strategy, *given: object, **named: object) -> None:
            nonlocal last
            begun[name] += 1
            last = name
            update(self, *given, **named)  # type: ignore[operator]

        return play

    monkeypatch.setattr(Strategy, "generator_update", counted("G", updates["G"]))
    monkeypatch.setattr(Strategy, "discriminator_update", counted("D", updates["D"]))
    if (strategy, order) == ("retain_as_published", "d_first"):
        session.play_round()  # no step comes between a graph and its use
        return
    with pytest.raises(RuntimeError) as raised:
        session.play_round()
    happened = explain(classify("RuntimeError", str(raised.value)), spec).happened
    if strategy == "retain_as_published":
        assert last == "D"
        assert begun["D"] == 1
        assert "D's backward pass through the fakes of" in happened
    else:
        subject = happened.partition(" went backward")[0]
        expected = f"{last} update 2 of the round" if begun[last] == 2 else f"{last} update"
        assert expected in subject
        assert begun[last] == (2 if "update 2" in subject else 1)
