"""An arm's MLflow run: the parent of its seeds, carrying their aggregate under the same keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ganbench.record.aggregate import Aggregate, aggregate_all, mean_curves
from ganbench.record.curves import Thinner
from ganbench.record.metrics import CURVES, FINALS, metric
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec
from ganbench.spec.value import canonical_json, content_hash
from ganbench.track import spelling
from ganbench.track.shipper import BATCH
from ganbench.track.store import Store, translated

if TYPE_CHECKING:
    from ganbench.track.reader import StoredRun

# One colour a strategy, told apart in grey and by colour-blind readers (Okabe and Ito 2008, with two added).
COLOURS = {
    "detach": "#000000",
    "toggle": "#e69f00",
    "inputs": "#56b4e9",
    "retain_deferred": "#009e73",
    "no_grad_replay": "#0072b2",
    "no_grad_fresh": "#cc79a7",
    "reuse": "#999999",
    "retain_as_published": "#d55e00",
    "detach_as_published": "#8b5a2b",
}


class Arms:
    """The arms' runs of one experiment. Every call may raise StoreError."""

    def __init__(self, store: Store, experiment_id: str, sweep: str, owner: Mapping[str, str]) -> None:
        self._owner = owner
        self._store = store
        self._experiment = experiment_id
        self._sweep = sweep
        self._ids: dict[str, str] = {}

    def ensure(self, spec: RunSpec, label: str) -> str:
        """The id of an arm's run, which is opened if need be."""
        arm = spec.arm_key
        if arm not in self._ids:
            known = self._known(arm)
            if known is None:
                self._ids[arm] = self._create(spec, label)
            else:
                self._ids[arm] = known.info.run_id
                if known.info.status != "RUNNING" and spelling.AGGREGATE_OF not in known.data.tags:
                    with translated("cannot reopen an arm"):
                        self._store.client.update_run(known.info.run_id, status="RUNNING")
        return self._ids[arm]

    def _known(self, arm: str) -> Any:
        runs = self._store.runs(self._experiment, f"tags.`{spelling.KIND}` = 'arm' and tags.`{spelling.ARM}` = '{arm}'")
        return runs[-1] if runs else None

    def _create(self, spec: RunSpec, label: str) -> str:
        from mlflow.entities import Param

        tags = {
            **spelling.identity_tags(spec, "arm", self._sweep),
            "mlflow.runColor": COLOURS.get(spec.strategy, "#000000"),
            **self._owner,
        }
        with translated(f"cannot open arm '{label}'"):
            run = self._store.client.create_run(
                self._experiment, start_time=int(time.time() * 1000), tags=tags, run_name=label
            )
            params = [Param(k, v) for k, v in spelling.params_of(spec, seed=False).items()]
            self._store.client.log_batch(run.info.run_id, params=params)
        identifier: str = run.info.run_id
        return identifier

    def close(
        self,
        spec: RunSpec,
        label: str,
        seeds: Sequence[StoredRun],
        curves: Sequence[Mapping[str, Mapping[int, float]]],
    ) -> None:
        """Write the aggregate of an arm's finished seeds and end its run.

        `curves` are the whole curves of the seeds that ended ok. Where the arm carries an aggregate of other runs
        (a seed was added or made again), it is replaced by a new run: points of a metric cannot be taken back.
        """
        made_of = content_hash(sorted(seed.run_id for seed in seeds))
        identifier = self.ensure(spec, label)
        known = self._known(spec.arm_key)
        if known is not None and known.data.tags.get(spelling.AGGREGATE_OF) == made_of:
            return
        if known is not None and spelling.AGGREGATE_OF in known.data.tags:
            identifier = self._replace(spec, label, known.info.run_id)
        with translated(f"cannot close arm '{label}'"):
            self._write(identifier, spec, label, seeds, curves, made_of)

    def interrupt(self) -> None:
        """End the arms that were opened and did not get their aggregate."""
        with translated("cannot close the arms"):
            for identifier in self._ids.values():
                run = self._store.client.get_run(identifier)
                if run.info.status == "RUNNING":
                    self._store.client.set_tag(identifier, spelling.OUTCOME, str(Outcome.INTERRUPTED))
                    self._store.client.set_terminated(identifier, Outcome.INTERRUPTED.mlflow_status)

    def _replace(self, spec: RunSpec, label: str, old: str) -> str:
        new = self._ids[spec.arm_key] = self._create(spec, label)
        with translated(f"cannot replace arm '{label}'"):
            for child in self._store.runs(self._experiment, f"tags.`{spelling.PARENT}` = '{old}'"):
                self._store.client.set_tag(child.info.run_id, spelling.PARENT, new)
            self._store.client.delete_run(old)
        return new

    def _write(
        self,
        identifier: str,
        spec: RunSpec,
        label: str,
        seeds: Sequence[StoredRun],
        curves: Sequence[Mapping[str, Mapping[int, float]]],
        made_of: str,
    ) -> None:
        from mlflow.entities import Metric, RunTag

        client, now = self._store.client, int(time.time() * 1000)
        ok = [seed for seed in seeds if seed.outcome is Outcome.OK]
        finals = aggregate_all({k: v for k, v in s.metrics.items() if k not in CURVES} for s in ok)
        points = [Metric(key, value, now, step) for key, step, value in _thinned(mean_curves(curves))]
        last_step = max((step for seed in curves for curve in seed.values() for step in curve), default=0)
        points += [Metric(key, a.mean, now, last_step) for key, a in finals.items() if not key.startswith("quality/")]
        for start in range(0, len(points), BATCH):
            client.log_batch(identifier, metrics=points[start : start + BATCH])
        failures = Counter(seed.outcome for seed in seeds if seed.outcome not in (None, Outcome.OK))
        outcome = (failures.most_common(1)[0][0] if failures else None) or Outcome.OK
        kinds = {seed.tags[spelling.ERROR_KIND] for seed in seeds if spelling.ERROR_KIND in seed.tags}
        tags = {
            spelling.OUTCOME: str(outcome),
            spelling.AS_EXPECTED: str(all(seed.as_expected for seed in seeds)).lower(),
            spelling.AGGREGATE_OF: made_of,
            spelling.NOTE: _note(spec, label, seeds, finals),
            **({spelling.ERROR_KIND: ",".join(sorted(kinds))} if kinds else {}),
            **{key: value for key, value in seeds[0].tags.items() if key.startswith("host.")},
            **{
                k: ok[0].tags[k]
                for k in (spelling.PRIMARY, spelling.FEATURES, spelling.FLOOR)
                if ok and k in ok[0].tags
            },
        }
        client.log_batch(identifier, tags=[RunTag(k, v) for k, v in tags.items()])
        summary = {
            "arm_key": spec.arm_key,
            "spec": {k: v for k, v in spec.model_dump(mode="json").items() if k != "seed"},
            "seeds": [{"seed": s.seed, "run_id": s.run_id, "outcome": str(s.outcome)} for s in seeds],
            "finals": {key: a.model_dump() for key, a in finals.items()},
        }
        client.log_text(identifier, canonical_json(summary), "record.json")
        client.set_terminated(identifier, outcome.mlflow_status, now)


def _thinned(curves: Mapping[str, Mapping[int, float]]) -> list[tuple[str, int, float]]:
    points: list[tuple[str, int, float]] = []
    for key, curve in curves.items():
        thinner = Thinner()
        steps = sorted(curve)
        for step in steps:
            points += thinner.take({"step": step, key: curve[step]}, step / max(1, steps[-1]))
        points += thinner.last()
    return points


def _note(spec: RunSpec, label: str, seeds: Sequence[StoredRun], finals: Mapping[str, Aggregate]) -> str:
    lines = [
        f"**{label}**, seeds {', '.join(str(seed.seed) for seed in seeds)}; expected: {spec.expected}",
        "",
    ]
    lines += ["| seed | outcome | as expected |", "|---|---|---|"]
    lines += [f"| {s.seed} | {s.outcome} | {'yes' if s.as_expected else 'no'}: {s.reason} |" for s in seeds]
    if finals:
        lines += ["", "| figure | mean | std | n | 95 % interval of the mean |", "|---|---|---|---|---|"]
        known = [key for key in finals if key in FINALS or key.startswith("quality/")]
        for key in sorted(known):
            a, text = finals[key], metric(key).text
            spread = text(a.std) if a.std is not None else "-"
            interval = f"{text(a.low)} to {text(a.high)}" if a.low is not None and a.high is not None else "-"
            lines.append(f"| {key} | {text(a.mean)} | {spread} | {a.n} | {interval} |")
    return "\n".join(lines)
