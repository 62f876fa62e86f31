"""Any field that takes one value takes a list: it is then an axis."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganbench.errors import ExperimentError
from ganbench.spec.axes import MAX_ARMS, axes_of, expand
from ganbench.spec.strategy import CORRECT, STRATEGIES


def test_every_combination_once() -> None:
    arms = expand({"ratio": ["1:1", "5:1"], "loss": ["bce", "hinge"], "device": "cpu"})
    assert len(arms) == 4
    assert {(arm["ratio"], arm["loss"], arm["device"]) for arm in arms} == {
        ("1:1", "bce", "cpu"),
        ("1:1", "hinge", "cpu"),
        ("5:1", "bce", "cpu"),
        ("5:1", "hinge", "cpu"),
    }


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]),
        st.integers() | st.lists(st.integers(), min_size=1, max_size=3),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_keys_is_no_matter(fields: dict[str, Any], random: Any) -> None:
    shuffled = list(fields.items())
    random.shuffle(shuffled)
    assert expand(dict(shuffled)) == expand(fields)
    assert list(axes_of(dict(shuffled)).items()) == list(axes_of(fields).items())
    assert len(expand(fields)) == math.prod(len(set(v)) if isinstance(v, list) else 1 for v in fields.values())


def test_a_nested_field_is_an_axis_too() -> None:
    fields = {"model": {"name": "mlp", "hidden": [64, 128]}, "optimizer": {"g_lr": [1e-3, 1e-4]}}
    assert axes_of(fields) == {"model.hidden": [64, 128], "optimizer.g_lr": [1e-3, 1e-4]}
    arms = expand(fields)
    assert len(arms) == 4
    assert {"model": {"name": "mlp", "hidden": 64}, "optimizer": {"g_lr": 1e-4}} in arms


def test_whole_models_are_an_axis() -> None:
    assert expand({"model": ["mlp", {"name": "mlp", "hidden": 8}]}) == [
        {"model": "mlp"},
        {"model": {"name": "mlp", "hidden": 8}},
    ]


@pytest.mark.parametrize(
    ("parent", "key", "one"),
    [("optimizer", "betas", [0.5, 0.999]), ("dataset", "range", [-1, 1]), ("latent", "shape", [100, 1, 1])],
)
def test_a_field_whose_value_is_a_list_needs_a_list_of_lists(parent: str, key: str, one: list[float]) -> None:
    assert expand({parent: {key: one}}) == [{parent: {key: one}}]
    assert axes_of({parent: {key: one}}) == {}
    other = [value / 2 for value in one]
    assert expand({parent: {key: [one, other]}}) == [{parent: {key: one}}, {parent: {key: other}}]


@pytest.mark.parametrize("key", ["generator_args", "discriminator_args", "sources"])
def test_what_is_meant_for_the_users_code_is_left_whole(key: str) -> None:
    fields = {"model": {key: {"sizes": [1, 2], "a.b": 3}}}
    assert expand(fields) == [fields]
    assert axes_of(fields) == {}


def test_all_and_correct_stand_for_strategies() -> None:
    assert [arm["strategy"] for arm in expand({"strategy": "all"})] == list(STRATEGIES)
    assert [arm["strategy"] for arm in expand({"strategy": "correct"})] == list(CORRECT)
    mixed = [arm["strategy"] for arm in expand({"strategy": ["reuse", "correct", "detach"]})]
    assert mixed == ["reuse", *CORRECT]
    assert len(expand({"strategy": ["all", "correct", "reuse"]})) == len(STRATEGIES)


def test_a_value_given_twice_counts_once() -> None:
    assert expand({"ratio": ["1:1", "2:1", "1:1"]}) == [{"ratio": "1:1"}, {"ratio": "2:1"}]
    assert axes_of({"ratio": ["1:1", "1:1"]}) == {}


@pytest.mark.parametrize(
    ("fields", "name"), [({"ratio": []}, "ratio"), ({"model": {"hidden": []}}, "model.hidden"), ({"strategy": []}, "s")]
)
def test_an_axis_without_values_is_refused_by_name(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ExperimentError, match=f"{name}.*at least one value, got an empty list"):
        expand(fields)


def test_too_many_arms_are_refused_before_they_are_made() -> None:
    with pytest.raises(ExperimentError, match=rf"1000000000000 arms, at most {MAX_ARMS}"):
        expand({"a": list(range(10**4)), "b": list(range(10**4)), "c": list(range(10**4))})


def _mapping_in_itself() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["model"] = circle
    return circle


def _list_in_itself() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "fields",
    [_mapping_in_itself(), {"ratio": [_list_in_itself(), _list_in_itself()]}, {"model": {"a": _mapping_in_itself()}}],
    ids=["mapping", "lists", "inner mapping"],
)
def test_an_alias_that_contains_itself_is_told(fields: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match="an alias that contains itself"):
        expand(fields)


@pytest.mark.parametrize("key", ["a.b", ".", 1, None, True])
def test_a_key_that_dotted_names_cannot_spell_is_refused(key: Any) -> None:
    with pytest.raises(ExperimentError, match="word without dots"):
        expand({"model": {"a": 1, key: 2}})
