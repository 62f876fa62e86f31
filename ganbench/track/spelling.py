"""How specs, records and outcomes are spelled as MLflow's params and tags. No other file knows."""

from __future__ import annotations

import base64
import getpass
import json
import subprocess
import zlib
from contextlib import suppress
from typing import Any

from ganbench import __version__
from ganbench.record.run_record import RunRecord
from ganbench.spec.place import is_place, short_place
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.spec.training import OptimizerSpec
from ganbench.spec.value import Value

KIND = "ganbench.kind"
SWEEP = "ganbench.sweep"
ARM = "ganbench.arm"
RUN_KEY = "ganbench.run_key"
OUTCOME = "ganbench.outcome"
ERROR_KIND = "ganbench.error_kind"
ERROR = "ganbench.error"
EXPECTED = "ganbench.expected"
AS_EXPECTED = "ganbench.as_expected"
VERSION = "ganbench.version"
# Which attempt at a run this is: shipping the same log twice finds the same MLflow run.
ATTEMPT = "ganbench.attempt"
# Why a run came out as expected or not, in a line.
REASON = "ganbench.reason"
# The child runs that an arm's aggregate was made of, hashed.
AGGREGATE_OF = "ganbench.aggregate_of"
DIVERGED_AT = "ganbench.diverged_at_update"
WEIGHTS = "ganbench.weights"
PAIRING = "ganbench.pairing"
PRIMARY = "ganbench.quality"
FEATURES = "ganbench.quality_on"
FLOOR = "ganbench.quality_floor"
SCHEDULE = "ganbench.schedule"
ROUNDS = "ganbench.rounds"
# An A/A copy of the reference.
CALIBRATION = "ganbench.calibration"
# What a reader of a run's times must know, line by line; absent where there is nothing.
WARNINGS = "ganbench.warnings"
# Where its times may not stand in a table of cost, why.
UNFIT = "ganbench.unfit_for_cost"
# The words of the arm's certificate, where there is one.
VERDICT = "ganbench.verdict"
NOTE = "mlflow.note.content"
PARENT = "mlflow.parentRunId"

_SWEEP_TAG = "ganbench.sweep."
_LONGEST_EXPERIMENT_TAG = 5000
_LONGEST_VALUE = 500


def params_of(spec: RunSpec, *, seed: bool) -> dict[str, str]:
    """The params of DESIGN's list; an arm has no seed."""
    params: dict[str, Any] = {
        "ratio": spec.ratio,
        "g_steps": spec.ratio.g,
        "d_steps": spec.ratio.d,
        "strategy": spec.strategy,
        "order": spec.order,
        "real_batches": spec.real_batches,
        "device": spec.device,
        "model": _named(spec.model),
        "dataset": _named(spec.dataset),
        "loss": spec.loss if isinstance(spec.loss, str) else _named(spec.loss),
        "batch_size": spec.batch_size,
        "latent_dim": spec.latent.dim,
        "optimizer": _optimizer(spec.optimizer),
        "g_lr": spec.optimizer.g_lr,
        "d_lr": spec.optimizer.d_lr,
        "budget": spec.budget,
        "precision": spec.precision,
        "compile": str(spec.compile).lower(),
        "threads": spec.threads,
    }
    if seed:
        params["seed"] = spec.seed
    return {key: str(value)[:_LONGEST_VALUE] for key, value in params.items()}


def _named(value: Any) -> str:
    """A model's, dataset's or loss's name, with the options that differ from its defaults."""
    plain = value.model_dump(mode="json", exclude_none=True)
    for hidden in ("name", "root", "content", "sources", "generator", "discriminator", "factory"):
        plain.pop(hidden, None)
    defaults = {k: _plain(f.get_default(call_default_factory=True)) for k, f in type(value).model_fields.items()}
    shown = [f"{k}={_shown(v)}" for k, v in sorted(plain.items()) if v != defaults.get(k)]
    return f"{value.name} {' '.join(shown)}".strip()


def _shown(value: Any) -> str:
    """A value as it would be written, places without their folders, a command line as one."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(item)}' for key, item in value.items())}}}"
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return f"[{' '.join(value)}]"
    return short_place(value) if is_place(value) else str(value)


def _optimizer(spec: OptimizerSpec) -> str:
    arguments = f" args={_shown(spec.args)}" if spec.args else ""
    return short_place(spec.name) + (" fused" if spec.fused else "") + arguments


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return value.model_dump(mode="json", exclude_none=True)
    return list(value) if isinstance(value, tuple) else value


def identity_tags(spec: RunSpec, kind: str, sweep: str) -> dict[str, str]:
    """What a run or arm is, known before it begins."""
    return {
        KIND: kind,
        SWEEP: sweep,
        ARM: spec.arm_key,
        EXPECTED: str(spec.expected),
        VERSION: __version__,
        **({CALIBRATION: "true"} if spec.calibration else {}),
        **({RUN_KEY: spec.run_key, PAIRING: spec.pairing_key} if kind == "run" else {}),
    }


def owner_tags() -> dict[str, str]:
    """Who ran it and from which commit: MLflow's client leaves these to its user."""
    tags = {"mlflow.source.name": "ganbench", "mlflow.source.type": "LOCAL"}
    with suppress(OSError, KeyError):  # a container may know no name for its user
        tags["mlflow.user"] = getpass.getuser()
    with suppress(OSError, subprocess.SubprocessError):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True)
        tags["mlflow.source.git.commit"] = commit.stdout.strip()
    return tags


def result_tags(record: RunRecord) -> dict[str, str]:
    """What a run turned out to be."""
    tags = {
        OUTCOME: str(record.outcome),
        AS_EXPECTED: str(record.came_out_as_declared).lower(),
        SCHEDULE: record.schedule,
        **record.host,
    }
    if record.error_kind:
        tags[ERROR_KIND] = str(record.error_kind)
    if "rounds" in record.counters:
        tags[ROUNDS] = str(int(record.counters["rounds"]))
    if record.error:
        tags[ERROR] = record.error
    if record.warnings:
        tags[WARNINGS] = "; ".join(record.warnings)
    if record.trust is not None and record.trust.jobs > 1:
        tags[UNFIT] = f"timed with up to {record.trust.jobs} runs side by side"
    if record.diverged_at_update is not None:
        tags[DIVERGED_AT] = str(record.diverged_at_update)
    if "weights" in record.checksums:
        tags[WEIGHTS] = record.checksums["weights"]
    if "primary" in record.judged_by:
        tags[PRIMARY] = record.judged_by["primary"]
        tags[FEATURES] = json.dumps({k: v for k, v in record.judged_by.items() if k != "primary"}, sort_keys=True)
        tags[FLOOR] = json.dumps(record.floor, sort_keys=True)
    return {key: value[:_LONGEST_VALUE] for key, value in tags.items() if value}


def sweep_tag(sweep: SweepSpec) -> tuple[str, str]:
    """A sweep as a tag of its experiment, compressed: its arms and seeds can be listed from the store alone.

    Raises:
        ValueError: the sweep is too large for a tag.
    """
    plain = json.dumps(sweep.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    text = base64.b64encode(zlib.compress(plain.encode(), 9)).decode()
    if len(text) > _LONGEST_EXPERIMENT_TAG:
        raise ValueError(f"a sweep's description takes {len(text)} characters, a tag {_LONGEST_EXPERIMENT_TAG}")
    return _SWEEP_TAG + sweep.sweep_id, text


def sweeps_in(tags: dict[str, str]) -> list[SweepSpec]:
    """The sweeps that an experiment's tags hold."""
    found = []
    for key, text in sorted(tags.items()):
        if key.startswith(_SWEEP_TAG):
            plain = json.loads(zlib.decompress(base64.b64decode(text)))
            found.append(SweepSpec.model_validate(plain))
    return found
