"""Certificates in MLflow: one run of kind `verify` for each, the newest in the place of an older one."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ganbench.record.certificate import Certificate
from ganbench.track import spelling
from ganbench.track.reader import StoredRun
from ganbench.track.store import Store, translated

# Which certificate of an arm a run holds.
KEY = "ganbench.certificate"
FILE = "verify.json"


def write_certificates(
    store: Store, experiment_id: str, sweep_id: str, certificates: Iterable[tuple[str, str, Certificate]]
) -> None:
    """Write (key, label, certificate) down.

    Raises:
        StoreError: the store does not take it.
    """
    owner = spelling.owner_tags()
    with translated("cannot write certificates"):
        for key, label, certificate in certificates:
            old = store.runs(experiment_id, f"tags.`{KEY}` = '{key}'")
            _write(store, experiment_id, {**_tags(certificate, sweep_id), KEY: key, **owner}, label, certificate)
            for run in old:
                store.client.delete_run(run.info.run_id)


def tag_verdicts(store: Store, runs: Mapping[str, StoredRun], verdicts: Mapping[str, str]) -> dict[str, StoredRun]:
    """The runs (by run_key), tagged with the words of their arm's certificate (by arm_key).

    Raises:
        StoreError: the store does not take it.
    """
    tagged = dict(runs)
    with translated("cannot write verdicts"):
        for key, run in runs.items():
            verdict = verdicts.get(run.arm_key)
            if verdict is not None and run.tags.get(spelling.VERDICT) != verdict:
                store.client.set_tag(run.run_id, spelling.VERDICT, verdict)
                tagged[key] = replace(run, tags={**run.tags, spelling.VERDICT: verdict})
    return tagged


def certificate_json(certificates: Iterable[Certificate]) -> str:
    """Lossless, as `verify.json` holds it."""
    return json.dumps([json.loads(certificate.model_dump_json()) for certificate in certificates], indent=1)


def figures(certificate: Certificate) -> dict[str, float]:
    """What of a certificate is a metric; absent where it is not finite."""
    found: dict[str, float | None] = {"verify/trajectory_difference": certificate.trajectory_difference}
    for name, truth in certificate.truth.items():
        found[f"verify/leftover_{name}"] = truth.worst_share
        found[f"verify/untrue_steps_{name}"] = float(truth.untrue)
    for phase, share in (certificate.discarded_time_share or {}).items():
        found[f"time/discarded_{phase}_share"] = share
    return {key: value for key, value in found.items() if value is not None and math.isfinite(value)}


def _write(store: Store, experiment_id: str, tags: dict[str, str], label: str, certificate: Certificate) -> None:
    from mlflow.entities import Metric, Param, RunTag

    run = store.client.create_run(experiment_id, tags=tags, run_name=f"verify {label}")
    now = int(time.time() * 1000)
    params = spelling.params_of(certificate.spec, seed=True)
    store.client.log_batch(
        run.info.run_id,
        metrics=[Metric(key, value, now, 0) for key, value in figures(certificate).items()],
        params=[Param(key, value) for key, value in params.items()],
        tags=[
            RunTag(spelling.NOTE, f"**{certificate.text}** (expected: {certificate.expected})\n\n{certificate.reason}")
        ],
    )
    with tempfile.TemporaryDirectory(prefix="ganbench-") as folder:
        path = Path(folder) / FILE
        path.write_text(certificate_json([certificate]), encoding="utf-8")
        store.client.log_artifact(run.info.run_id, str(path))
    store.client.set_terminated(run.info.run_id, "FINISHED")


def _tags(certificate: Certificate, sweep_id: str) -> dict[str, str]:
    spec = certificate.spec
    found = {
        **spelling.identity_tags(spec, "verify", sweep_id),
        spelling.VERDICT: certificate.text,
        spelling.AS_EXPECTED: str(certificate.as_expected).lower(),
        spelling.REASON: certificate.reason[:500],
    }
    if certificate.error_kind:
        found[spelling.ERROR_KIND] = str(certificate.error_kind)
    return found
