"""From the fields of an experiment to arms, blocks and labels; whatever is wrong is one ExperimentError."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from ganbench.errors import ExperimentError
from ganbench.spec.axes import MAX_ARMS
from ganbench.spec.ratio import UpdateRatio
from ganbench.spec.strategy import STRATEGIES
from ganbench.spec.sweep import OWN_KEYS, RUN_KEYS, SweepSpec

USER = {"generator": "nets.py:G", "discriminator": "nets.py:D"}


def sweep_of(**fields: Any) -> SweepSpec:
    return SweepSpec.from_fields(fields, "here.yaml")


def test_a_sweep_spells_every_arm_out() -> None:
    sweep = sweep_of(name="n", question="q?", ratio=["1:1", "5:1"], strategy="all", seeds=2)
    assert (sweep.name, sweep.question, sweep.seeds) == ("n", "q?", (0, 1))
    assert len(sweep.arms) == 2 * len(STRATEGIES)
    assert sweep.axes == {"ratio": ["1:1", "5:1"], "strategy": list(STRATEGIES)}
    assert {arm.ratio for arm in sweep.arms} == {UpdateRatio(1, 1), UpdateRatio(5, 1)}


def test_arms_that_ask_for_the_same_are_one_arm() -> None:
    assert len(sweep_of(ratio=["1:1", " 1:1 ", "01:1"]).arms) == 1
    assert len(sweep_of(model=["mlp", {"name": "mlp", "hidden": 128}]).arms) == 1


@pytest.mark.parametrize(("asked", "got"), [(1, (0,)), (5, (0, 1, 2, 3, 4)), ([7, 3], (7, 3)), ([0], (0,))])
def test_seeds_are_a_count_or_a_list(asked: object, got: tuple[int, ...]) -> None:
    assert sweep_of(seeds=asked).seeds == got


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"stratgy": "detach"}, ["unknown key 'stratgy'", "did you mean 'strategy'?", "batch_size"]),
        ({"seed": 3}, ["unknown key 'seed'", "did you mean 'seeds'?"]),
        ({"optimizer.g_lr": 1e-3}, ["unknown key 'optimizer.g_lr'", "'optimizer'"]),
        ({"ratio": "0:5"}, ["ratio", "at least 1", "'0:5'", "5:1"]),
        ({"ratio": "5"}, ["ratio", "g:d", "'5'"]),
        ({"ratio": 301}, ["ratio", "g:d", "'301'"]),
        ({"ratio": []}, ["ratio", "at least one value", "empty list"]),
        ({"ratio": {"g": 5, "d": 1}}, ["ratio", "g:d"]),
        ({"strategy": "detch"}, ["strategy", "'detch'", "did you mean 'detach'?", "toggle", "correct"]),
        ({"strategy": None}, ["strategy", "None"]),
        ({"order": "first_g"}, ["order", "'g_first'", "'first_g'"]),
        ({"real_batches": "one"}, ["real_batches", "'per_round'", "'one'"]),
        ({"device": "gpu"}, ["device", "cuda:N", "'gpu'"]),
        ({"device": "cuda:x"}, ["device", "cuda:N", "'cuda:x'"]),
        ({"model": "mpl"}, ["model", "'mpl'", "did you mean 'mlp'?", "generator"]),
        ({"model": {"name": "mlp", "hiden": 3}}, ["model", "'hiden'", "did you mean 'hidden'?"]),
        ({"model": {"name": {"a": 1}}}, ["model", "unknown model"]),
        ({"model": [{"name": ["mlp"]}]}, ["model", "unknown model"]),
        ({"model": 7}, ["model", "'7'", "mlp"]),
        ({"model": {"name": "mlp", "hidden": 0}}, ["model", "hidden", "0"]),
        ({"model": {"generator": "a.py:G"}}, ["model", "discriminator"]),
        ({"model": {**USER, "generator_args": {"when": {1, 2}}}}, ["generator_args", "{1, 2}", "text"]),
        ({"model": {**USER, "generator_args": {"scale": math.nan}}}, ["generator_args", "finite", "nan"]),
        ({"model": {"name": "mlp", "a.b": 3}}, ["model.a.b", "without dots"]),
        ({"dataset": "mnits"}, ["dataset", "'mnits'", "did you mean 'mnist'?"]),
        ({"dataset": {"name": {"a": 1}}}, ["dataset", "unknown dataset"]),
        ({"dataset": [{"name": ["digits"]}]}, ["dataset", "unknown dataset"]),
        ({"dataset": {"name": "digits", "range": [1, -1]}}, ["dataset", "range", "low < high", "[1.0, -1.0]"]),
        ({"dataset": {"name": "digits", "range": [-math.inf, 1]}}, ["dataset", "range", "finite", "-inf"]),
        ({"dataset": {"name": "digits", "size": 2}}, ["dataset", "size", "2"]),
        ({"dataset": {"name": "digits", "points": 5}}, ["dataset", "'points'", "channels"]),
        ({"latent": {"dim": 4, "shape": [4]}}, ["latent", "dim or its shape"]),
        ({"latent": {"dim": 0}}, ["latent", "0"]),
        ({"latent": {"shape": []}}, ["latent.shape", "at least 1 item"]),
        ({"latent": {"dim": 4, "distribution": "cauchy"}}, ["latent", "'normal' or 'uniform'", "'cauchy'"]),
        ({"loss": "bcee"}, ["loss", "'bce'", "'bcee'"]),
        ({"batch_size": 0}, ["batch_size", "greater than or equal to 1", "got 0"]),
        ({"batch_size": True}, ["batch_size", "integer", "True"]),
        ({"batch_size": 64.5}, ["batch_size", "integer", "64.5"]),
        ({"optimizer": {"lr": 1}}, ["optimizer", "'lr'", "did you mean 'g_lr'?"]),
        ({"optimizer": {"g_lr": 0}}, ["optimizer.g_lr", "greater than 0", "got 0"]),
        ({"optimizer": {"betas": [0.5, 1]}}, ["optimizer.betas", "[0, 1)", "[0.5, 1.0]"]),
        ({"optimizer": {"betas": [0.5]}}, ["optimizer.betas"]),
        ({"optimizer": {"name": "sgd", "betas": [0.5, 0.9]}}, ["optimizer", "betas belong to adam", "sgd", "momentum"]),
        ({"optimizer": {"momentum": 0.9}}, ["optimizer", "momentum belongs to sgd", "adam", "betas"]),
        ({"optimizer": {"name": "rmsprop", "fused": True}}, ["optimizer", "no fused rmsprop", "fused: false"]),
        ({"optimizer": {"fused": True, "foreach": True}}, ["optimizer", "not both"]),
        ({"optimizer": {"weight_decay": math.inf}}, ["optimizer.weight_decay", "inf"]),
        ({"budget": "5"}, ["budget", "'5'", "2000 updates"]),
        ({"budget": "5 epochs"}, ["budget", "'epochs'", "rounds"]),
        ({"evaluate": {"samples": 3}}, ["evaluate.samples", "50", "got 3"]),
        ({"evaluate": {"every": "5"}}, ["evaluate.every", "'5'"]),
        ({"precision": "fp8"}, ["precision", "'fp32'", "'fp8'"]),
        ({"compile": 1}, ["compile", "boolean", "1"]),
        ({"threads": 0}, ["threads", "0"]),
        ({"dataset": "ring8"}, ["ring8 needs model mlp2d", "got mlp"]),
        ({"model": "mlp2d"}, ["digits needs model mlp or dcgan", "got mlp2d"]),
        ({"model": "dcgan"}, ["28, 32 or 64 px", "got 8 px of digits", "dataset.size"]),
        ({"name": "a/b"}, ["name", "slashes", "'a/b'"]),
        ({"name": ""}, ["name", "1 to 200", "''"]),
        ({"name": ".hidden"}, ["name", "dot"]),
        ({"name": " a"}, ["name", "' a'"]),
        ({"name": 5}, ["name", "string", "got 5"]),
        ({"name": "a\x85b"}, ["name", "control"]),
        ({"name": "\ud800"}, ["name"]),
        ({"strategy": "\ud800"}, ["Unicode"]),
        ({"question": ["a"]}, ["question", "string", "['a']"]),
        ({"seeds": 0}, ["seeds", "1 to 10000", "got 0"]),
        ({"seeds": True}, ["seeds", "True"]),
        ({"seeds": "5"}, ["seeds", "'5'"]),
        ({"seeds": [1, 1]}, ["seeds", "different", "[1, 1]"]),
        ({"seeds": [-1]}, ["seeds", "[-1]"]),
        ({"seeds": []}, ["seeds", "[]"]),
    ],
    ids=lambda value: ascii(value)[:50] if isinstance(value, dict) else "",
)
def test_what_is_wrong_is_told_with_the_rule_and_what_was_given(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ExperimentError) as told:
        sweep_of(**fields)
    message = str(told.value)
    assert message.startswith("here.yaml: ")
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ExperimentError, match=r"ratio: .*'5'.*; batch_size: .*got 0"):
        sweep_of(ratio="5", batch_size=0)


def test_too_many_arms_are_told() -> None:
    with pytest.raises(ExperimentError, match=f"159201 arms, at most {MAX_ARMS}"):
        sweep_of(ratio=[f"{n}:1" for n in range(1, 400)], batch_size=list(range(1, 400)))


@pytest.mark.parametrize("place", ["generator_args", "model", "ratio", "optimizer"])
def test_an_alias_that_contains_itself_is_an_experiment_error(place: str) -> None:
    mapping: dict[str, Any] = {}
    mapping["again"] = mapping
    listed: list[Any] = []
    listed.append(listed)
    fields: dict[str, Any] = {"model": {**USER, place: mapping}} if place == "generator_args" else {place: mapping}
    with pytest.raises(ExperimentError):
        sweep_of(**fields)
    fields = {"model": {**USER, place: {"a": listed}}} if place == "generator_args" else {place: [listed, [listed]]}
    with pytest.raises(ExperimentError):
        sweep_of(**fields)


_KEYS = "hidden g_lr betas shape dim range size samples every generator discriminator generator_args sources channels"
_WORDS = st.sampled_from([*OWN_KEYS, *RUN_KEYS, *_KEYS.split(), "fused", "weight_decay", "first_of"])
_NAMES = "mlp mlp2d dcgan digits ring8 mnist 5:1 0:1 all detach adam sgd cpu auto a.py:G normal bce"
_TEXTS = st.sampled_from([*_NAMES.split(), "100 updates", "1e-9 seconds", ""])
_LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 70) | st.integers() | st.floats() | _TEXTS | st.text() | st.binary()
    | st.dates() | st.sets(st.integers(), max_size=2)
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_WORDS, _VALUES, max_size=5))
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_any_fields_are_a_sweep_or_an_experiment_error(fields: dict[str, Any]) -> None:
    try:
        sweep = sweep_of(**fields)
    except ExperimentError as error:
        note(str(error))
        return
    assert sweep.arms
    assert len(sweep.runs()) == len(sweep.arms) * len(sweep.seeds)
    assert all(sweep.label(arm) for arm in sweep.arms)


# Values that belong to their keys, so that sweeps are reached more often than by chance.
_FITTING = st.fixed_dictionaries(
    {},
    optional={
        "model": st.dictionaries(st.sampled_from(["name", "hidden", "layers", "batch_norm", "width"]), _VALUES),
        "dataset": st.dictionaries(st.sampled_from(["name", "size", "channels", "range", "points", "root"]), _VALUES),
        "latent": st.dictionaries(st.sampled_from(["dim", "shape", "distribution"]), _VALUES),
        "optimizer": st.dictionaries(st.sampled_from(["name", "g_lr", "betas", "momentum", "weight_decay"]), _VALUES),
        "evaluate": st.dictionaries(st.sampled_from(["every", "samples"]), _VALUES),
        "seeds": _VALUES,
    },
)


@given(_FITTING)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_any_nested_fields_are_a_sweep_or_an_experiment_error(fields: dict[str, Any]) -> None:
    try:
        sweep = sweep_of(**fields)
    except ExperimentError:
        return
    assert sweep.arms


@given(st.dictionaries(st.text(), _VALUES, max_size=3))
def test_any_arguments_of_the_users_code_are_hashed_or_refused(arguments: dict[str, Any]) -> None:
    try:
        sweep = sweep_of(model={**USER, "generator_args": arguments})
    except ExperimentError:
        return
    assert len(sweep.arms[0].run_key) == 16


def big_sweep(**more: Any) -> SweepSpec:
    return sweep_of(**{"ratio": ["1:1", "2:1", "5:1"], "strategy": "correct", "seeds": 6, **more})


def test_a_block_holds_every_arm_once_with_one_seed() -> None:
    sweep = big_sweep(seeds=[4, 0, 9])
    runs, size = sweep.runs(), len(sweep.arms)
    blocks = [runs[start : start + size] for start in range(0, len(runs), size)]
    assert [{run.seed for run in block} for block in blocks] == [{4}, {0}, {9}]
    for block in blocks:
        assert Counter(run.arm_key for run in block) == dict.fromkeys((arm.arm_key for arm in sweep.arms), 1)


def test_the_order_is_random_between_blocks_and_the_same_each_time() -> None:
    sweep = big_sweep()
    runs, size = sweep.runs(), len(sweep.arms)
    assert [run.run_key for run in runs] == [run.run_key for run in big_sweep().runs()]
    orders = {tuple(run.arm_key for run in runs[start : start + size]) for start in range(0, len(runs), size)}
    assert len(orders) == 6
    assert tuple(sorted(arm.arm_key for arm in sweep.arms)) not in orders


def test_the_order_follows_from_the_content_alone() -> None:
    keys = [run.run_key for run in big_sweep().runs()]
    assert [run.run_key for run in big_sweep(name="other", question="else?").runs()] == keys
    assert [run.run_key for run in big_sweep(ratio=["5:1", "1:1", "2:1"]).runs()] == keys


def test_one_more_arm_leaves_the_other_runs_what_they_were() -> None:
    before = {run.run_key for run in big_sweep().runs()}
    after = {run.run_key for run in big_sweep(ratio=["1:1", "2:1", "5:1", "1:5"]).runs()}
    assert before < after
    assert before < {run.run_key for run in big_sweep(seeds=7).runs()}


def test_the_id_of_a_sweep_is_its_content() -> None:
    sweep = big_sweep()
    assert len(sweep.sweep_id) == 12
    assert big_sweep(name="x", question="y").sweep_id == sweep.sweep_id
    assert big_sweep(ratio=["5:1", "2:1", "1:1"], seeds=[5, 4, 3, 2, 1, 0]).sweep_id == sweep.sweep_id
    assert big_sweep(seeds=7).sweep_id != sweep.sweep_id
    assert big_sweep(loss="hinge").sweep_id != sweep.sweep_id


def test_settling_devices_keeps_the_id_and_joins_equal_arms() -> None:
    sweep = sweep_of(device=["auto", "cpu"])
    settled = sweep.settled([arm.model_copy(update={"device": "cpu"}) for arm in sweep.arms])
    assert len(settled.arms) == 1
    assert settled.sweep_id == sweep.sweep_id
    assert settled.settled(settled.arms).sweep_id == sweep.sweep_id


def test_a_label_names_what_differs_between_the_arms() -> None:
    sweep = sweep_of(
        ratio=["1:1", "5:1"],
        loss=["bce", "hinge"],
        model={"name": "mlp", "hidden": [64, 128]},
        latent={"dim": [8, 16]},
        optimizer={"betas": [[0.5, 0.9], [0.5, 0.99]]},
        device="cpu",
    )
    labels = {sweep.label(arm): arm for arm in sweep.arms}
    assert len(labels) == len(sweep.arms) == 32
    for label, arm in labels.items():
        assert label.startswith(f"{arm.ratio} detach cpu ")
        assert {arm.loss, f"hidden={arm.model.hidden}", f"dim={arm.latent.dim}"} <= set(label.split())  # type: ignore[union-attr]
    assert [sweep_of(device="cpu").label(arm) for arm in sweep_of(device="cpu").arms] == ["1:1 detach cpu"]


def test_labels_of_several_models_and_datasets_are_their_names() -> None:
    sweep = sweep_of(dataset=["mnist", "kmnist"], model=["mlp", "dcgan"], device="cpu")
    assert {sweep.label(arm) for arm in sweep.arms} == {
        f"1:1 detach cpu {dataset} {model}" for dataset in ("mnist", "kmnist") for model in ("mlp", "dcgan")
    }
