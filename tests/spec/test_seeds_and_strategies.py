"""Seeds derived from named parts, and the one table of strategies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ganbench
from ganbench.errors import ErrorKind
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import CORRECT, REFERENCE, STRATEGIES, Verdict, expectation

PINNED = {
    (0,): 5603503230836333301,
    (3, "latents", "generator"): 230708295665320273,
    ("order", "x", 1): 7566913699327912475,
}
CONTROLS = ("reuse", "retain_as_published", "detach_as_published")


def test_seeds_are_the_same_on_every_machine() -> None:
    assert {parts: derive_seed(*parts) for parts in PINNED} == PINNED


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_seeds_are_the_same_in_every_process(hash_seed: str) -> None:
    code = "from ganbench.spec.seeds import derive_seed; print(derive_seed(3, 'latents', 'generator'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
    )
    assert int(done.stdout) == PINNED[3, "latents", "generator"]


@given(st.lists(st.text() | st.integers(), min_size=1), st.lists(st.text() | st.integers(), min_size=1))
def test_different_parts_give_different_seeds(one: list[str | int], other: list[str | int]) -> None:
    assert 0 <= derive_seed(*one) < 2**63
    assert (derive_seed(*one) == derive_seed(*other)) == ([str(p) for p in one] == [str(p) for p in other])


@given(st.text(min_size=2), st.data())
def test_the_borders_between_parts_count(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(text) - 1))
    assert derive_seed(text) != derive_seed(text[:cut], text[cut:])
    assert derive_seed(text, "") != derive_seed("", text)


def test_the_table_holds_the_nine_strategies() -> None:
    assert tuple(STRATEGIES) == (
        "detach",
        "toggle",
        "inputs",
        "retain_deferred",
        "no_grad_replay",
        "no_grad_fresh",
        "reuse",
        "retain_as_published",
        "detach_as_published",
    )
    assert tuple(name for name, row in STRATEGIES.items() if row.control) == CONTROLS
    assert set(CORRECT) == set(STRATEGIES) - set(CONTROLS)
    assert REFERENCE == "detach"
    assert all(row.summary for row in STRATEGIES.values())


def test_every_strategy_is_one_file() -> None:
    files = {path.stem for path in (Path(ganbench.__file__).parent / "gan" / "strategies").glob("*.py")}
    assert files - {"__init__", "base"} == set(STRATEGIES)


PLAIN = {
    "detach": Verdict.REFERENCE,
    "toggle": Verdict.SAME,
    "inputs": Verdict.SAME,
    "retain_deferred": Verdict.SAME,
    "no_grad_replay": Verdict.OTHER_ESTIMATOR,
    "no_grad_fresh": Verdict.OTHER_ESTIMATOR,
    "reuse": Verdict.RAISES,
    "retain_as_published": Verdict.RAISES,
    "detach_as_published": Verdict.CONTAMINATED,
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_expectations_of_the_default_order(strategy: str) -> None:
    expected = expectation(strategy, order="g_first", fused=False, compiled=False)
    assert expected.verdict is PLAIN[strategy]
    assert (expected.error_kind is not None) == (expected.verdict is Verdict.RAISES)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_error_kind_goes_with_raises_alone(strategy: str, order: str, fused: bool, compiled: bool) -> None:
    expected = expectation(strategy, order=order, fused=fused, compiled=compiled)
    assert (expected.error_kind is not None) == (expected.verdict is Verdict.RAISES)


@pytest.mark.parametrize(
    ("strategy", "order", "fused", "compiled", "text"),
    [
        ("reuse", "g_first", False, False, "raises graph_freed"),
        ("reuse", "d_first", False, False, "raises graph_freed"),
        ("retain_as_published", "g_first", False, False, "raises modified_in_place"),
        ("retain_as_published", "g_first", True, False, "runs, to be judged by its gradients"),
        ("retain_as_published", "d_first", False, False, "same"),
        ("retain_as_published", "d_first", True, False, "same"),
        ("retain_as_published", "g_first", False, True, "raises donated_buffers"),
        ("retain_deferred", "g_first", False, True, "raises donated_buffers"),
        ("detach_as_published", "d_first", True, False, "contaminated"),
        ("detach", "d_first", True, True, "reference"),
        ("no_grad_fresh", "d_first", False, False, "other estimator"),
    ],
)
def test_order_fusing_and_compilation_change_what_is_expected(
    strategy: str, order: str, fused: bool, compiled: bool, text: str
) -> None:
    assert str(expectation(strategy, order=order, fused=fused, compiled=compiled)) == text


def test_kinds_are_the_nine_of_the_design() -> None:
    assert [str(kind) for kind in ErrorKind] == [
        "graph_freed",
        "modified_in_place",
        "no_path",
        "double_backward_unsupported",
        "donated_buffers",
        "out_of_memory",
        "non_finite",
        "shape_mismatch",
        "other",
    ]
