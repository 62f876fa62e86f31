"""One run's events into MLflow: batched, thinned, each thing once."""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganbench import __version__
from ganbench.record.advice import advice_on
from ganbench.record.curves import CurveTable, Thinner, rows_of
from ganbench.record.events import Ended, Event, Picture, Rows, Started
from ganbench.record.run_record import RunRecord
from ganbench.spec.experiment import to_yaml
from ganbench.track import spelling
from ganbench.track.run_log import Header
from ganbench.track.store import Store, translated

if TYPE_CHECKING:
    from mlflow.entities import Metric

BATCH = 1000


class RunShipper:
    """Sends the events of one attempt at a run. Sending the same events again adds nothing: the MLflow run is found
    by its attempt, points carry the same step and time stamp, params and tags the same values, artifacts their names.

    `parent` gives the arm's MLflow run; every call may raise StoreError.
    """

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        header: Header,
        parent: Callable[[Header], str],
        owner: Mapping[str, str],
    ) -> None:
        self._owner = owner
        self._store = store
        self._experiment = experiment_id
        self._header = header
        self._parent = parent
        self._spec = header.spec
        self._table = CurveTable()
        self._thinner = Thinner()
        self._waiting: list[Metric] = []
        self._pictures: list[Picture] = []
        self._started_at = 0.0
        self._resumed = False
        self.run_id = ""
        self.record: RunRecord | None = None

    def ship(self, event: Event) -> None:
        """Send one event, or keep it until there is a batch."""
        with translated(f"cannot write run {self._spec.run_key}"):
            match event:
                case Started():
                    self._begin(event)
                case Rows():
                    self._rows(event)
                case Picture():
                    self._pictures.append(event)
                case Ended():
                    self._end(event)

    def _begin(self, event: Started) -> None:
        self._started_at = event.at
        attempt = self._header.attempt
        known = self._store.runs(self._experiment, f"tags.`{spelling.ATTEMPT}` = '{attempt}'")
        if known:
            self.run_id = known[0].info.run_id
            self._resumed = True
            return
        tags = {
            **spelling.identity_tags(self._spec, "run", self._header.sweep),
            spelling.ATTEMPT: attempt,
            spelling.PARENT: self._parent(self._header),
            **self._owner,
        }
        self.run_id = self._store.client.create_run(
            self._experiment,
            start_time=int(event.at * 1000),
            tags=tags,
            run_name=f"seed {self._spec.seed}",
        ).info.run_id
        self._log(params=spelling.params_of(self._spec, seed=True))

    def _rows(self, event: Rows) -> None:
        stamp = int(self._started_at * 1000)
        for row in rows_of(event.columns):
            self._table.append(row)
            progress = self._spec.budget.progress(row)
            for key, step, value in self._thinner.take(row, progress):
                self._waiting.append(self._metric(key, value, stamp + int(1000 * row["seconds"]), step))
        if len(self._waiting) >= BATCH:
            self._send()

    def _end(self, event: Ended) -> None:
        record = self.record = self._record(event)
        stamp, step = int(event.at * 1000), int(self._updates(record))
        # The last points keep the time of the rows, so that a second sending is the same.
        for key, at, value in self._thinner.last():
            self._waiting.append(self._metric(key, value, stamp, at))
        finals = {k: v for k, v in record.finals.items() if math.isfinite(v)}
        self._waiting += [self._metric(key, value, stamp, step) for key, value in finals.items()]
        self._send()
        self._log(tags={**spelling.result_tags(record), spelling.NOTE: note_of(record)})
        self._artifacts(record)
        self._store.client.set_terminated(self.run_id, record.outcome.mlflow_status, int(event.at * 1000))

    def _record(self, event: Ended) -> RunRecord:
        advice = advice_on(event, self._spec)
        return RunRecord(
            happened=advice.happened if advice else None,
            remedy=advice.remedy if advice else None,
            version=__version__,
            experiment=self._header.experiment,
            sweep=self._header.sweep,
            position=self._header.position,
            run_key=self._spec.run_key,
            arm_key=self._spec.arm_key,
            spec=self._spec,
            outcome=event.outcome,
            started_at=self._started_at,
            ended_at=event.at,
            **event.found,
        )

    def _updates(self, record: RunRecord) -> float:
        return record.counters.get("g_updates", 0) + record.counters.get("d_updates", 0)

    def _metric(self, key: str, value: float, stamp: int, step: int) -> Metric:
        from mlflow.entities import Metric

        return Metric(key, value, stamp, step)

    def _send(self) -> None:
        for start in range(0, len(self._waiting), BATCH):
            self._store.client.log_batch(self.run_id, metrics=self._waiting[start : start + BATCH])
        self._waiting.clear()

    def _list(self, folder: str) -> list[Any]:
        """The artifacts in a folder; none where the run was only just made, without asking."""
        return list(self._store.client.list_artifacts(self.run_id, folder)) if self._resumed else []

    def _log(self, params: dict[str, str] | None = None, tags: dict[str, str] | None = None) -> None:
        from mlflow.entities import Param, RunTag

        self._store.client.log_batch(
            self.run_id,
            params=[Param(k, v) for k, v in (params or {}).items()],
            tags=[RunTag(k, v) for k, v in (tags or {}).items()],
        )

    def _artifacts(self, record: RunRecord) -> None:
        with tempfile.TemporaryDirectory(prefix="ganbench-") as folder:
            place = Path(folder)
            (place / "record.json").write_text(record.model_dump_json(indent=1), encoding="utf-8")
            (place / "config.yaml").write_text(to_yaml(self._spec, record.experiment), encoding="utf-8")
            if record.traceback:
                (place / "traceback.txt").write_text(record.traceback, encoding="utf-8")
            if record.output.strip():
                (place / "output.txt").write_text(record.output, encoding="utf-8")
            if len(self._table):
                write_curves(self._table, place / "curves.parquet")
            if self._pictures:
                samples = place / "samples"
                samples.mkdir()
                for picture in self._pictures:
                    (samples / f"step_{picture.step:09d}.png").write_bytes(picture.png)
                (samples / "final.png").write_bytes(self._pictures[-1].png)
            self._store.client.log_artifacts(self.run_id, folder)
            # The same grids under a step slider on the run's page; their names are MLflow's, new at every call.
            there = {Path(file.path).name.split("+timestamp")[0] for file in self._list("images")}
            for picture in self._pictures:
                if f"samples~grid+step+{picture.step}" in there:
                    continue
                self._store.client.log_image(
                    self.run_id, _image(picture.png), key="samples/grid", step=picture.step,
                    timestamp=int(self._started_at * 1000) + picture.step,
                )  # fmt: skip


def _image(png: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(png)).convert("RGB")


def write_curves(table: CurveTable, path: Path) -> None:
    """All rows and columns as a parquet file, unthinned."""
    import pyarrow as pa
    from pyarrow import parquet

    whole = {"step", "rounds", "g_updates", "d_updates", "real_images"}
    arrays = {
        name: pa.array(values, pa.int64() if name in whole else pa.float64()) for name, values in table.columns.items()
    }
    parquet.write_table(pa.table(arrays), path)


def note_of(record: RunRecord) -> str:
    """A run's readable summary, as Markdown."""
    lines = [f"**{record.spec.ratio} {record.spec.strategy}**, seed {record.spec.seed}: {record.outcome}"]
    lines.append(f"Expected: {record.spec.expected}. One round: `{record.schedule or '-'}`.")
    if record.error:
        lines.append(f"`{record.error_kind}`: {_plain_text(record.error)}")
    lines += [_plain_text(line) for line in (record.happened, record.remedy) if line]
    if record.overshoot:
        lines.append(f"Budget {record.spec.budget}, overshot by {record.overshoot:g} to the end of the round.")
    if record.floor:
        floors = ", ".join(f"{key.removeprefix('quality/')} {value:.3g}" for key, value in record.floor.items())
        lines.append(f"Real against real: {floors}. Judged on {json.dumps(record.judged_by)}.")
    return "\n\n".join(lines)


def _plain_text(text: str) -> str:
    return text.replace("`", "'").replace("<", "&lt;")[:600]


def replay(shipper: RunShipper, events: Sequence[Event]) -> None:
    """Send all events of a log."""
    for event in events:
        shipper.ship(event)
