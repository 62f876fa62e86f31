"""What a user may name in an experiment: networks, data, losses and optimizers of their own."""

from __future__ import annotations

from typing import Any

import pytest

from ganbench.errors import ExperimentError
from ganbench.spec.dataset import UserDatasetSpec
from ganbench.spec.experiment import override, parse_yaml, to_yaml
from ganbench.spec.loss import UserLossSpec
from ganbench.spec.model import UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.track.spelling import params_of

MODEL = {"generator": "nets/gan.py:G", "discriminator": "nets/gan.py:D"}
EVERYTHING: dict[str, Any] = {
    "model": {
        **MODEL,
        "generator_args": {"width": 3, "norms": [None, "batch"]},
        "argv": ["--img_size", 32, "--lr", 2e-4],
        "conditional": True,
        "output": {"generator": 0, "discriminator": "nets/gan.py:first"},
        "init": "nets/gan.py:weights_init_normal",
    },
    "dataset": {"name": "nets/data.py:make", "args": {"n": 5}, "argv": ["-v"], "range": [0, 1]},
    "loss": {"generator": "nets/loss.py:g", "discriminator": "nets/loss.py:d", "on_probabilities": True},
    "optimizer": {"name": "nets/opt.py:make", "g_lr": 1e-3, "args": {"alpha": 0.9}},
    "device": "cpu",
}


def run(**fields: Any) -> RunSpec:
    return RunSpec.model_validate(fields)


def sweep(**fields: Any) -> SweepSpec:
    return SweepSpec.from_fields(fields, "mine.yaml")


def test_everything_comes_back_from_its_own_file() -> None:
    spec = run(**EVERYTHING)
    (again,) = SweepSpec.from_fields(parse_yaml(to_yaml(spec, "n"), "x"), "x").runs()
    assert again == spec
    assert again.run_key == spec.run_key
    assert RunSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_words_of_a_command_line_are_text() -> None:
    model = run(**EVERYTHING).model
    assert isinstance(model, UserModelSpec)
    assert model.argv == ("--img_size", "32", "--lr", "0.0002")


def test_keys_do_not_depend_on_the_folder() -> None:
    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return value.replace("nets/", "/some/where/else/") if isinstance(value, str) else value

    here, there = run(**EVERYTHING), run(**moved(EVERYTHING))
    assert here != there
    assert (here.run_key, here.pairing_key) == (there.run_key, there.pairing_key)
    assert "/" not in str(here.content()["model"]) + str(here.content()["loss"]) + str(here.content()["optimizer"])
    assert here.content()["dataset"]["name"] == "data.py:make"


def test_a_users_run_of_before_is_still_found() -> None:
    """Keys that came later are in no hash while they are not used."""
    assert set(run(model=MODEL).content()["model"]) == {
        "generator",
        "discriminator",
        "generator_args",
        "discriminator_args",
        "sources",
    }
    written = {**MODEL, "argv": [], "conditional": False, "output": {}, "factory_args": {}}
    assert run(model=written).run_key == run(model=MODEL).run_key


def test_one_output_stands_for_both_networks() -> None:
    assert run(model={**MODEL, "output": 0}) == run(model={**MODEL, "output": {"generator": 0, "discriminator": 0}})


def test_a_bare_place_is_short_for_its_name() -> None:
    spec = run(dataset="a/data.py:make", loss="a/loss.py:Mine", model="mlp")
    assert isinstance(spec.dataset, UserDatasetSpec)
    assert (spec.dataset.name, spec.dataset.place) == ("data.py:make", "a/data.py:make")
    assert isinstance(spec.loss, UserLossSpec)
    assert spec == run(dataset={"name": "a/data.py:make"}, loss={"name": "a/loss.py:Mine"}, model="mlp")


def test_places_are_an_axis_and_told_apart_by_their_names() -> None:
    asked = sweep(
        model=[MODEL, {"factory": "nets/gan.py:both"}],
        loss=["bce", "nets/loss.py:Mine", {"generator": "nets/loss.py:g", "discriminator": "nets/loss.py:d"}],
        optimizer={"name": ["adam", "nets/opt.py:make"]},
    )
    assert len(asked.arms) == 12
    labels = {asked.label(arm) for arm in asked.arms}
    assert len(labels) == 12
    assert "1:1 detach auto g/d G/D name=opt.py:make" in labels
    assert not any("nets/" in label for label in labels)


def test_arguments_of_the_users_code_are_no_axes() -> None:
    assert len(sweep(dataset={"name": "d.py:make", "args": {"sizes": [1, 2]}}).arms) == 1
    assert len(sweep(model={"factory": "d.py:make", "factory_args": {"sizes": [1, 2]}}).arms) == 1


def test_a_setting_of_the_command_line_reaches_them() -> None:
    fields = override({"dataset": "d.py:make", "model": MODEL}, ["dataset.args={n: 7}", "model.argv=[--size, 8]"])
    arm = sweep(**fields).arms[0]
    assert isinstance(arm.dataset, UserDatasetSpec)
    assert arm.dataset.args == {"n": 7}


def test_params_spell_them_without_folders() -> None:
    params = params_of(run(**EVERYTHING), seed=False)
    assert params["model"] == (
        "G/D argv=[--img_size 32 --lr 0.0002] conditional=True generator_args={width: 3, norms: [None, 'batch']} "
        "init=gan.py:weights_init_normal output={generator: 0, discriminator: gan.py:first}"
    )
    assert params["dataset"] == "data.py:make args={n: 5} argv=[-v] range=[0.0, 1.0]"
    assert params["loss"] == "g/d on_probabilities=True"
    assert params["optimizer"] == "opt.py:make args={alpha: 0.9}"
    assert params_of(run(model=MODEL), seed=False)["model"] == "G/D"
    assert params_of(run(optimizer={"fused": True}), seed=False)["optimizer"] == "adam fused"


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"model": {**MODEL, "conditionl": True}}, ["unknown key 'conditionl'", "did you mean 'conditional'"]),
        ({"model": {"generator": "a.py:G"}}, ["discriminator: field required", "factory"]),
        ({"model": {**MODEL, "factory": "a.py:f"}}, ["factory gives both", "generator and discriminator"]),
        ({"model": {**MODEL, "factory_args": {"a": 1}}}, ["factory_args belong to a factory"]),
        ({"model": {"factory": "a.py:f", "generator_args": {"a": 1}}}, ["generator_args", "factory_args"]),
        ({"model": {"factory": "a.py"}}, ["model.factory", "file.py:Name", "'a.py'"]),
        ({"model": {**MODEL, "argv": "--size 3"}}, ["model.argv", "list of words"]),
        ({"model": {**MODEL, "argv": ["-v", True]}}, ["quotes around true and false"]),
        ({"model": {**MODEL, "output": {"generater": 0}}}, ["unknown key 'generater'", "'generator'"]),
        ({"dataset": "digts"}, ["unknown dataset", "'digits'", "file.py:Name"]),
        ({"dataset": {"name": "d.py:f", "arg": {}}}, ["unknown key 'arg'", "known are args, argv", "name"]),
        ({"dataset": {"name": "d.py:f", "range": [1, 0]}}, ["low < high"]),
        ({"loss": "hnge"}, ["unknown loss 'hnge'", "did you mean 'hinge'", "file.py:Name"]),
        ({"loss": {"generator": "l.py:g"}}, ["there is no discriminator"]),
        ({"loss": {"name": "bce", "on_probabilities": True}}, ["unknown loss 'bce'", "without further keys"]),
        ({"loss": {"name": "l.py:L", "generator": "l.py:g"}}, ["not both"]),
        ({"loss": {"generator": "l.py:g", "discriminator": "l.py:d", "args": {"a": 1}}}, ["args are for a loss"]),
        ({"loss": 3}, ["got 3", "hinge"]),
        ({"optimizer": {"name": "adamm"}}, ["unknown optimizer", "did you mean 'adam'", "file.py:make"]),
        ({"optimizer": {"name": "o.py:f", "betas": [0.5, 0.9]}}, ["betas belong to shipped", "args: {betas"]),
        ({"optimizer": {"name": "adam", "args": {"a": 1}}}, ["args and argv are for an optimizer of your own"]),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(fields: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        sweep(**fields)
    text = str(caught.value)
    assert [part for part in parts if part not in text] == []
    assert "\n" not in text
