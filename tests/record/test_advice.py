"""What an error means and what avoids it: two lines for every kind, right for the schedule at hand."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from ganbench.errors import ErrorKind
from ganbench.record.advice import advice_on, explain
from ganbench.record.events import Ended
from ganbench.record.outcome import Outcome
from ganbench.spec.experiment import override
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import STRATEGIES


def spec_of(**fields: Any) -> RunSpec:
    return RunSpec.model_validate({"device": "cpu", **fields})


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_every_kind_has_two_sentences_without_gaps(kind: ErrorKind, strategy: str, order: str) -> None:
    for ratio, compiled, precision in itertools.product(("1:1", "2:1", "1:7"), (False, True), ("fp32", "fp16")):
        spec = spec_of(strategy=strategy, order=order, ratio=ratio, compile=compiled, precision=precision)
        advice = explain(kind, spec)
        for line in (advice.happened, advice.remedy):
            assert 20 < len(line) < 330
            assert line.endswith(".")
            assert line[0].isupper() or line[0] == "`"
            assert not re.search(r"[{}]|None|  ", line)
            assert "\n" not in line
        assert advice.happened != advice.remedy


@pytest.mark.parametrize("kind", ErrorKind)
def test_what_is_recommended_exists(kind: ErrorKind) -> None:
    remedy = explain(kind, spec_of(strategy="retain_deferred")).remedy
    named = set(re.findall(r"\b[a-z]+_[a-z_]+\b", remedy)) - {"g_lr", "d_lr", "max_batch"}
    assert named <= set(STRATEGIES)
    for key in re.findall(r"\b(?:optimizer|latent|dataset)\.[a-z_]+\b", remedy):
        assert override({}, [f"{key}=1"])  # an unknown key raises
    for strategy in re.findall(r"\b(detach|inputs|toggle)\b", remedy):
        assert not STRATEGIES[strategy].control


def test_the_schedule_at_hand_is_told() -> None:
    changed = explain(ErrorKind.MODIFIED_IN_PLACE, spec_of(strategy="retain_as_published", ratio="2:1"))
    assert "(G G D)" in changed.happened
    memory = explain(ErrorKind.OUT_OF_MEMORY, spec_of(batch_size=512, ratio="1:9"))
    assert "batch_size 512" in memory.happened
    assert "G D×9" in memory.happened


@pytest.mark.parametrize(
    ("order", "ratio", "beginning"),
    [
        ("g_first", "1:1", "The D update went backward through the fakes of the G update (G D), whose"),
        ("g_first", "3:2", "The first D update went backward through the fakes of G update 3 of the round (G G G D D)"),
        ("d_first", "1:1", "The G update went backward through the fakes of the D update (D G), whose"),
        ("d_first", "2:1", "The first G update went backward through the fakes of the D update (D G G)"),
        ("d_first", "1:2", "D update 2 of the round went backward through the fakes of D update 1 (D D G)"),
    ],
)
def test_the_update_that_found_its_graph_freed_is_named(order: str, ratio: str, beginning: str) -> None:
    advice = explain(ErrorKind.GRAPH_FREED, spec_of(strategy="reuse", order=order, ratio=ratio))
    assert advice.happened.startswith(beginning)
    assert "Use detach" in advice.remedy


@pytest.mark.parametrize("kind", [ErrorKind.GRAPH_FREED, ErrorKind.MODIFIED_IN_PLACE, ErrorKind.DONATED_BUFFERS])
@pytest.mark.parametrize("strategy", [name for name, row in STRATEGIES.items() if not row.control])
def test_a_strategy_that_keeps_graphs_apart_is_not_blamed(kind: ErrorKind, strategy: str) -> None:
    if kind is ErrorKind.DONATED_BUFFERS and strategy == "retain_deferred":
        return
    advice = explain(kind, spec_of(strategy=strategy, ratio="2:3", compile=True))
    assert strategy in advice.happened
    assert "detach:" not in advice.remedy
    assert "Use " not in advice.remedy


@pytest.mark.parametrize("outcome", Outcome)
def test_only_runs_that_failed_by_themselves_are_explained(outcome: Outcome) -> None:
    found = {"error_kind": ErrorKind.OTHER, "error": "something"}
    advice = advice_on(Ended("key", outcome, 0.0, found), spec_of())
    assert (advice is not None) is (outcome in ("raised", "diverged", "out_of_memory", "crashed"))
    assert advice_on(Ended("key", outcome, 0.0, {}), spec_of()) is None
