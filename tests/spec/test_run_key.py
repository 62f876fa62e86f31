"""The content hash of a run: what is asked for, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ganbench.spec.dataset import PictureSpec, PointSpec, UserDatasetSpec, default_samples
from ganbench.spec.loss import UserLossSpec
from ganbench.spec.model import DcganSpec, Mlp2dSpec, MlpSpec, OutputSpec, UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.training import EvaluateSpec, LatentSpec, OptimizerSpec
from ganbench.spec.value import canonical_json

PAIR = {"generator": "loss.py:g", "discriminator": "loss.py:d"}
USER = {"generator": "nets.py:G", "discriminator": "nets.py:D"}


def run(**fields: Any) -> RunSpec:
    return RunSpec.model_validate(fields)


# Where one of these changes, results that users have already are no longer found: raise SPEC_VERSION on purpose or
# undo the change.
GOLDEN: list[tuple[dict[str, Any], str]] = [
    ({}, "2874c685d2bb67b2"),
    ({"ratio": "5:1", "strategy": "inputs", "seed": 3}, "131100d9cebc1ae2"),
    (
        {"model": {"name": "dcgan", "width": 16}, "dataset": "mnist", "loss": "hinge", "device": "cuda"},
        "cb0a986f37b1a200",
    ),
    (
        {"model": "mlp2d", "dataset": "ring8", "latent": {"dim": 16}, "optimizer": {"name": "sgd", "g_lr": 1e-3}},
        "b6001bc41f499016",
    ),
]


@pytest.mark.parametrize(("fields", "key"), GOLDEN)
def test_keys_stay_what_they_were(fields: dict[str, Any], key: str) -> None:
    assert run(**fields).run_key == key


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_keys_depend_on_neither_the_process_nor_the_working_directory(hash_seed: str, tmp_path: Path) -> None:
    code = (
        "from ganbench.spec.sweep import SweepSpec\n"
        "sweep = SweepSpec.from_fields({'ratio': ['1:1', '5:1'], 'strategy': 'all', 'seeds': 2}, 'x')\n"
        "print(sweep.sweep_id, *(run.run_key for run in sweep.runs()))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=where,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed, where in ((hash_seed, tmp_path), ("99", Path.cwd()))
    }
    assert len(answers) == 1


def test_the_order_of_the_keys_is_no_matter() -> None:
    fields: dict[str, Any] = {
        "ratio": "5:1",
        "model": {"name": "mlp", "hidden": 64, "layers": 3},
        "optimizer": {"name": "adam", "g_lr": 1e-3, "betas": [0.0, 0.9]},
    }
    backwards = {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in reversed(fields.items())}
    assert list(backwards) != list(fields)
    assert run(**backwards).run_key == run(**fields).run_key


def test_where_files_lie_is_no_matter() -> None:
    key = run(dataset="mnist", model="mlp").run_key
    assert run(dataset={"name": "mnist", "root": "elsewhere/data"}, model="mlp").run_key == key
    near, far = (run(model={**USER, "generator": f"{folder}nets.py:G"}) for folder in ("", "some/other/place/"))
    assert near.run_key == far.run_key
    assert near.arm_key == far.arm_key
    assert near.pairing_key == far.pairing_key


# field -> a value that is not its default, and what else it needs. One row for each field, nested ones included.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ratio": ({}, {"ratio": "2:2"}),
    "strategy": ({}, {"strategy": "toggle"}),
    "calibration": ({}, {"calibration": True}),
    "order": ({}, {"order": "d_first"}),
    "real_batches": ({}, {"real_batches": "per_d_update"}),
    "device": ({}, {"device": "cpu"}),
    "loss": ({}, {"loss": "bce_prob"}),
    "batch_size": ({}, {"batch_size": 65}),
    "budget": ({}, {"budget": "1000 rounds"}),
    "precision": ({}, {"precision": "bf16"}),
    "compile": ({}, {"compile": True}),
    "threads": ({}, {"threads": 2}),
    "seed": ({}, {"seed": 1}),
    "model": ({"dataset": "mnist", "model": "mlp"}, {"dataset": "mnist", "model": "dcgan"}),
    "dataset": ({}, {"dataset": {"name": "folder", "size": 8, "channels": 1}}),
    "latent": ({}, {"latent": {"dim": 63}}),
    "optimizer": ({}, {"optimizer": "adamw"}),
    "evaluate": ({}, {"evaluate": {"samples": 60}}),
    "MlpSpec.hidden": ({}, {"model": {"name": "mlp", "hidden": 129}}),
    "MlpSpec.layers": ({}, {"model": {"name": "mlp", "layers": 3}}),
    "MlpSpec.batch_norm": ({}, {"model": {"name": "mlp", "batch_norm": True}}),
    "Mlp2dSpec.hidden": ({"model": "mlp2d", "dataset": "ring8"}, {"model": {"name": "mlp2d", "hidden": 3}}),
    "Mlp2dSpec.layers": ({"model": "mlp2d", "dataset": "ring8"}, {"model": {"name": "mlp2d", "layers": 3}}),
    "DcganSpec.width": ({"model": "dcgan", "dataset": "mnist"}, {"model": {"name": "dcgan", "width": 3}}),
    "DcganSpec.batch_norm": ({"model": "dcgan", "dataset": "mnist"}, {"model": {"name": "dcgan", "batch_norm": False}}),
    "UserModelSpec.generator": ({"model": USER}, {"model": {**USER, "generator": "nets.py:H"}}),
    "UserModelSpec.discriminator": ({"model": USER}, {"model": {**USER, "discriminator": "nets.py:E"}}),
    "UserModelSpec.generator_args": ({"model": USER}, {"model": {**USER, "generator_args": {"a": 1}}}),
    "UserModelSpec.discriminator_args": ({"model": USER}, {"model": {**USER, "discriminator_args": {"a": 1}}}),
    "UserModelSpec.factory": (
        {"model": {"factory": "nets.py:a"}},
        {"model": {"factory": "nets.py:b"}},
    ),
    "UserModelSpec.factory_args": (
        {"model": {"factory": "nets.py:a"}},
        {"model": {"factory": "nets.py:a", "factory_args": {"a": 1}}},
    ),
    "UserModelSpec.argv": ({"model": USER}, {"model": {**USER, "argv": ["--size", 32]}}),
    "UserModelSpec.conditional": ({"model": USER}, {"model": {**USER, "conditional": True}}),
    "UserModelSpec.output": ({"model": USER}, {"model": {**USER, "output": 0}}),
    "UserModelSpec.init": ({"model": USER}, {"model": {**USER, "init": "nets.py:init"}}),
    "OutputSpec.generator": ({"model": USER}, {"model": {**USER, "output": {"generator": 0}}}),
    "OutputSpec.discriminator": ({"model": USER}, {"model": {**USER, "output": {"discriminator": "nets.py:first"}}}),
    "UserDatasetSpec.place": ({"dataset": "data.py:a"}, {"dataset": "data.py:b"}),
    "UserDatasetSpec.args": ({"dataset": "data.py:a"}, {"dataset": {"name": "data.py:a", "args": {"n": 1}}}),
    "UserDatasetSpec.argv": ({"dataset": "data.py:a"}, {"dataset": {"name": "data.py:a", "argv": ["-v"]}}),
    "UserDatasetSpec.range": ({"dataset": "data.py:a"}, {"dataset": {"name": "data.py:a", "range": [0, 1]}}),
    "UserDatasetSpec.sources": ({"dataset": "data.py:a"}, {"dataset": {"name": "data.py:a", "sources": {"a": "0"}}}),
    "UserDatasetSpec.content": ({"dataset": "data.py:a"}, {"dataset": {"name": "data.py:a", "content": "ab"}}),
    "UserLossSpec.place": ({"loss": "loss.py:a"}, {"loss": "loss.py:b"}),
    "UserLossSpec.generator": ({"loss": PAIR}, {"loss": {**PAIR, "generator": "loss.py:h"}}),
    "UserLossSpec.discriminator": ({"loss": PAIR}, {"loss": {**PAIR, "discriminator": "loss.py:h"}}),
    "UserLossSpec.args": ({"loss": "loss.py:a"}, {"loss": {"name": "loss.py:a", "args": {"margin": 1}}}),
    "UserLossSpec.argv": ({"loss": PAIR}, {"loss": {**PAIR, "argv": ["-v"]}}),
    "UserLossSpec.on_probabilities": ({"loss": PAIR}, {"loss": {**PAIR, "on_probabilities": True}}),
    "UserLossSpec.sources": ({"loss": PAIR}, {"loss": {**PAIR, "sources": {"loss.py": "00"}}}),
    "UserModelSpec.sources": ({"model": USER}, {"model": {**USER, "sources": {"nets.py": "00"}}}),
    "PictureSpec.size": ({}, {"dataset": {"name": "digits", "size": 16}}),
    "PictureSpec.channels": ({}, {"dataset": {"name": "digits", "channels": 3}}),
    "PictureSpec.range": ({}, {"dataset": {"name": "digits", "range": [0, 1]}}),
    "PictureSpec.content": ({"dataset": "folder"}, {"dataset": {"name": "folder", "content": "ab"}}),
    "PointSpec.points": ({"model": "mlp2d", "dataset": "ring8"}, {"dataset": {"name": "ring8", "points": 7}}),
    "LatentSpec.shape": ({}, {"latent": {"shape": [64, 1]}}),
    "LatentSpec.distribution": ({}, {"latent": {"dim": 64, "distribution": "uniform"}}),
    "OptimizerSpec.args": ({"optimizer": "opt.py:make"}, {"optimizer": {"name": "opt.py:make", "args": {"a": 1}}}),
    "OptimizerSpec.argv": ({"optimizer": "opt.py:make"}, {"optimizer": {"name": "opt.py:make", "argv": ["-v"]}}),
    "OptimizerSpec.sources": (
        {"optimizer": "opt.py:make"},
        {"optimizer": {"name": "opt.py:make", "sources": {"opt.py": "00"}}},
    ),
    "OptimizerSpec.g_lr": ({}, {"optimizer": {"g_lr": 2.1e-4}}),
    "OptimizerSpec.d_lr": ({}, {"optimizer": {"d_lr": 2.1e-4}}),
    "OptimizerSpec.betas": ({}, {"optimizer": {"betas": [0.5, 0.99]}}),
    "OptimizerSpec.momentum": ({"optimizer": "sgd"}, {"optimizer": {"name": "sgd", "momentum": 0.9}}),
    "OptimizerSpec.weight_decay": ({}, {"optimizer": {"weight_decay": 1e-4}}),
    "OptimizerSpec.fused": ({}, {"optimizer": {"fused": True}}),
    "OptimizerSpec.foreach": ({}, {"optimizer": {"foreach": False}}),
    "EvaluateSpec.every": ({}, {"evaluate": {"every": "7 updates"}}),
    "EvaluateSpec.samples": ({}, {"evaluate": {"samples": 51}}),
    "EvaluateSpec.fid": ({}, {"evaluate": {"fid": "weights.pth"}}),
}
NESTED: tuple[type[BaseModel], ...] = (
    MlpSpec,
    Mlp2dSpec,
    DcganSpec,
    UserModelSpec,
    OutputSpec,
    UserDatasetSpec,
    UserLossSpec,
    PictureSpec,
    PointSpec,
    LatentSpec,
    OptimizerSpec,
    EvaluateSpec,
)


def test_every_field_is_looked_at() -> None:
    fields = set(RunSpec.model_fields)
    fields |= {f"{part.__name__}.{name}" for part in NESTED for name in part.model_fields if name != "name"}
    assert set(CHANGES) == fields - {"PictureSpec.root"}


@pytest.mark.parametrize("field", CHANGES)
def test_each_field_that_matters_changes_the_key(field: str) -> None:
    before, change = CHANGES[field]
    one, other = run(**before), run(**{**before, **change})
    assert one != other
    assert one.run_key != other.run_key
    assert (one.arm_key == other.arm_key) == (field == "seed")
    assert (one.pairing_key == other.pairing_key) == (field in ("strategy", "calibration"))


@pytest.mark.parametrize("fields", [fields for fields, _ in GOLDEN] + [{"model": USER}, {"optimizer": "rmsprop"}])
def test_leaving_defaults_away_is_the_same_as_writing_them_down(fields: dict[str, Any]) -> None:
    short = run(**fields)
    written = run(**short.model_dump(mode="json"))
    assert written == short
    assert written.run_key == short.run_key


@pytest.mark.parametrize(
    "written",
    [
        {"model": "mlp"},
        {"model": {"name": "mlp", "hidden": 128}},
        {"dataset": {"name": "digits", "size": 8, "channels": 1, "range": [-1, 1]}},
        {"latent": {"dim": 64}},
        {"latent": {"shape": [64], "distribution": "normal"}},
        {"optimizer": "adam"},
        {"optimizer": {"betas": [0.5, 0.999], "g_lr": 2e-4}},
        {"budget": "1_000 updates"},
        {"budget": "1e3 updates"},
        {"evaluate": {}},
        {"ratio": " 1:1"},
    ],
    ids=str,
)
def test_each_default_may_be_written_down(written: dict[str, Any]) -> None:
    assert run(**written).run_key == run().run_key


def test_every_top_level_default_may_be_written_down() -> None:
    defaults = {name: field.default for name, field in RunSpec.model_fields.items()}
    assert PydanticUndefined not in defaults.values()
    assert run(**defaults).run_key == run().run_key


def test_evaluation_has_its_defaults_from_budget_and_dataset() -> None:
    assert str(run(budget="1000 updates").evaluate_every) == "250 updates"
    assert run().evaluate_samples == default_samples(run().dataset) == 898
    asked = run(evaluate={"every": "10 rounds", "samples": 70})
    assert (str(asked.evaluate_every), asked.evaluate_samples) == ("10 rounds", 70)


def test_equal_values_have_one_json_and_no_nan() -> None:
    assert canonical_json({"b": 1, "a": [1.0, None]}) == '{"a":[1.0,null],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})
