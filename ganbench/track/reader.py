"""What the store holds, as plain values: sweeps, runs, records, curves."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ganbench.errors import UsageError
from ganbench.record.outcome import Outcome
from ganbench.record.run_record import RunRecord
from ganbench.spec.sweep import SweepSpec
from ganbench.track import spelling
from ganbench.track.store import Store, translated


@dataclass(frozen=True)
class StoredRun:
    """One child run as the store has it. `metrics` are the last values of every key."""

    run_id: str
    run_key: str
    arm_key: str
    seed: int
    outcome: Outcome | None
    as_expected: bool
    reason: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    started_at: float

    @property
    def floor(self) -> dict[str, float]:
        """What real data gets against real data, by key."""
        found: dict[str, float] = json.loads(self.tags.get(spelling.FLOOR, "{}"))
        return found


@dataclass(frozen=True)
class StoredSweep:
    """A sweep with the experiment that holds it."""

    experiment_id: str
    experiment: str
    spec: SweepSpec


class Reader:
    """Reads one store. Every call may raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def sweeps(self, name: str | None = None) -> list[StoredSweep]:
        """All sweeps, or those of one experiment, by experiment name."""
        with translated("cannot read experiments"):
            experiments = []
            token: str | None = None
            while True:
                page = self._store.client.search_experiments(max_results=1000, page_token=token)
                experiments.extend(page)
                token = page.token
                if not token:
                    break
        return [
            StoredSweep(e.experiment_id, e.name, spec)
            for e in sorted(experiments, key=lambda e: str(e.name))
            if name is None or e.name == name
            for spec in spelling.sweeps_in(e.tags)
        ]

    def find(self, name_or_id: str) -> list[StoredSweep]:
        """The sweeps of an experiment name, or the one of a sweep id (or an unambiguous beginning of one).

        Raises:
            UsageError: nothing of that name; the message lists what there is.
        """
        sweeps = self.sweeps()
        named = [s for s in sweeps if s.experiment == name_or_id]
        if named:
            return named
        by_id = [s for s in sweeps if len(name_or_id) >= 4 and s.spec.sweep_id.startswith(name_or_id)]
        if len(by_id) == 1:
            return by_id
        known = ", ".join(sorted({s.experiment for s in sweeps})) or "none yet; `ganbench sweep` makes one"
        raise UsageError(f"no sweep named '{name_or_id}' in this store; there are: {known}")

    def runs(self, experiment_id: str, run_keys: Iterable[str] | None = None) -> dict[str, StoredRun]:
        """The runs of an experiment by run_key, of each the newest with a result, else the newest at all."""
        wanted = set(run_keys) if run_keys is not None else None
        newest: dict[str, StoredRun] = {}
        for run in self._store.runs(experiment_id, f"tags.`{spelling.KIND}` = 'run'"):
            found = _stored(run)
            if wanted is not None and found.run_key not in wanted:
                continue
            before = newest.get(found.run_key)
            if before is None or _has_result(found) or not _has_result(before):
                newest[found.run_key] = found
        return newest

    def record(self, run_id: str) -> RunRecord:
        """A run's record."""
        with (
            tempfile.TemporaryDirectory(prefix="ganbench-") as folder,
            translated(f"cannot read record of run {run_id}"),
        ):
            path = self._store.client.download_artifacts(run_id, "record.json", folder)
            text = Path(path).read_text(encoding="utf-8")
        return RunRecord.model_validate_json(text)

    def curves(self, run_id: str) -> dict[str, dict[int, float]]:
        """A run's whole curves (key -> step -> value), without values that are not finite."""
        from pyarrow import parquet

        with (
            tempfile.TemporaryDirectory(prefix="ganbench-") as folder,
            translated(f"cannot read curves of run {run_id}"),
        ):
            path = self._store.client.download_artifacts(run_id, "curves.parquet", folder)
            table = parquet.read_table(path).to_pydict()
        steps = table["step"]
        return {
            key: {s: v for s, v in zip(steps, values, strict=True) if v is not None and math.isfinite(v)}
            for key, values in table.items()
            if "/" in key
        }


def _has_result(run: StoredRun) -> bool:
    return run.outcome is not None and run.outcome.is_result


def _stored(run: object) -> StoredRun:
    data, info = run.data, run.info  # type: ignore[attr-defined]
    tags = dict(data.tags)
    outcome = tags.get(spelling.OUTCOME)
    return StoredRun(
        run_id=info.run_id,
        run_key=tags.get(spelling.RUN_KEY, ""),
        arm_key=tags.get(spelling.ARM, ""),
        seed=int(data.params.get("seed", -1)),
        outcome=Outcome(outcome) if outcome in set(Outcome) else None,
        as_expected=tags.get(spelling.AS_EXPECTED) == "true",
        reason=tags.get(spelling.REASON, ""),
        params=dict(data.params),
        tags=tags,
        metrics=dict(data.metrics),
        started_at=info.start_time / 1000,
    )
