"""The tracking store behind a URI: opened once, set up once, its errors translated."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganbench.errors import StoreError, UsageError

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

DEFAULT_URI = "sqlite:///mlflow.db"
_PASSWORD = re.compile(r"(?<=//)([^/@:]*):[^/@]*@")


def masked(text: str) -> str:
    """The text with the password of any URI in it hidden."""
    return _PASSWORD.sub(r"\1:***@", text)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn MLflow's and the network's errors into one line that says what could not be done.

    Raises:
        StoreError: anything that the store or the way to it raised.
    """
    import requests
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, requests.RequestException, SQLAlchemyError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreError(masked(f"{what}: {first}")) from error


class Store:
    """An MLflow tracking store; only this process writes to it. `make`: a sqlite file that is not there is made.

    Raises:
        StoreError: the store cannot be opened.
        UsageError: a sqlite file is not there and is not to be made.
    """

    def __init__(self, uri: str, *, make: bool = True) -> None:
        path = sqlite_path(uri)
        if not make and path is not None and not path.exists():
            raise UsageError(f"no store '{path}' here yet; `ganbench sweep` makes one, --tracking-uri names another")
        self.uri = uri
        # A server that is gone is told within seconds, not after minutes; what it missed stays in the log.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        from mlflow.tracking import MlflowClient

        _quiet()
        with translated(f"cannot open the tracking store '{uri}'"):
            self.client: MlflowClient = MlflowClient(tracking_uri=uri)
            self.client.search_experiments(max_results=1)

    def experiment(self, name: str) -> Experiment | None:
        """The experiment of that name, or None; a deleted one counts as none.

        Raises:
            StoreError: the store did not answer.
        """
        with translated(f"cannot read experiment '{name}'"):
            found = self.client.get_experiment_by_name(name)
        return found if found is not None and found.lifecycle_stage == "active" else None

    def ensure_experiment(self, name: str, tags: dict[str, str]) -> str:
        """The id of the experiment of that name, made if need be, with these tags set.

        Raises:
            StoreError: the store did not take it, or the name belongs to a deleted experiment.
        """
        with translated(f"cannot set up experiment '{name}'"):
            known = self.client.get_experiment_by_name(name)
            if known is not None and known.lifecycle_stage != "active":
                raise StoreError(f"experiment '{name}' was deleted in MLflow; restore it there or choose another name")
            identifier: str = (
                known.experiment_id
                if known is not None
                else self.client.create_experiment(name, artifact_location=self._artifacts())
            )
            for key, value in tags.items():
                if known is None or known.tags.get(key) != value:
                    self.client.set_experiment_tag(identifier, key, value)
        return identifier

    def _artifacts(self) -> str | None:
        """Beside a sqlite file, in a folder that a plain `mlflow ui` reads; servers choose by themselves."""
        path = sqlite_path(self.uri)
        return None if path is None else (path.resolve().parent / "mlartifacts").as_uri()

    def runs(self, experiment_id: str, text: str) -> list[Any]:
        """All active runs of an experiment that a filter finds, oldest first.

        Raises:
            StoreError: the store did not answer.
        """
        found: list[Any] = []
        token: str | None = None
        with translated("cannot read runs"):
            while True:
                page = self.client.search_runs(
                    [experiment_id],
                    text,
                    max_results=1000,
                    order_by=["attributes.start_time ASC"],
                    page_token=token,
                )
                found.extend(page)
                token = page.token
                if not token:
                    return found


def sqlite_path(uri: str) -> Path | None:
    """The file of a sqlite URI, None for others."""
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def _quiet() -> None:
    """MLflow and alembic announce every migration of a new file; a progress display is no place for it."""
    import logging

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
