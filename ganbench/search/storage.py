"""Where Optuna keeps its studies: SQLite, PostgreSQL or another database, or a journal file."""

from __future__ import annotations

import time
from pathlib import Path

import optuna
import sqlalchemy
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ganbench.errors import StoreError, UsageError

JOURNAL = "journal:"
_TRIES = 5
_FORMS = "sqlite:///optuna.db, postgresql+psycopg://USER@HOST/DATABASE or journal:FILE"


def open_storage(url: str, tracking_uri: str | None = None) -> BaseStorage:
    """Open or create a storage. `postgresql://` is read with psycopg 3.

    Raises:
        UsageError: the URL is none, its driver is not installed, or MLflow keeps its own tables there (`tracking_uri`
            says where MLflow does, also before there are any).
        StoreError: the database or file cannot be used.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if url.startswith(JOURNAL):
        return _journal(Path(url.removeprefix(JOURNAL)).expanduser())
    address = address_of(url)
    if tracking_uri is not None and "://" in tracking_uri and _same(address, tracking_uri):
        raise UsageError(_shared(address))
    return get_storage(_database(address))


def described(url: str) -> str:
    """The URL without its password."""
    return url if url.startswith(JOURNAL) else address_of(url).render_as_string(hide_password=True)


def _journal(path: Path) -> BaseStorage:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(path)))
    except (OSError, ValueError) as error:
        raise StoreError(f"the journal '{path}' cannot be used: {error}") from None


def address_of(url: str) -> URL:
    """A database's URL, read.

    Raises:
        UsageError: it is none.
    """
    try:
        address = sqlalchemy.make_url(url)
    except ArgumentError:
        raise UsageError(f"a storage is {_FORMS}, got '{url}'") from None
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address


def _database(address: URL) -> RDBStorage:
    shown = address.render_as_string(hide_password=True)
    options: dict[str, object] = {"connect_args": {"timeout": 60}} if address.get_backend_name() == "sqlite" else {}
    if address.get_backend_name() == "sqlite" and address.database:
        folder = Path(address.database).parent
        if not folder.is_dir():
            raise UsageError(f"storage {shown}: there is no folder '{folder}'")
    for attempt in range(_TRIES):
        try:
            _refuse_mlflow(address)
            return RDBStorage(address.render_as_string(hide_password=False), engine_kwargs=options)
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
            hint = "; pip install 'ganbench[postgres]'" if "postgres" in shown else ""
            raise UsageError(f"storage {shown}: its driver is not installed ({_line(error)}){hint}") from None
        except SQLAlchemyError as error:
            # Two processes that begin at once both create the tables; the later one finds them at its next try.
            if attempt == _TRIES - 1 or ("exist" not in str(error) and "UNIQUE" not in str(error)):
                raise StoreError(f"storage {shown} cannot be used: {_line(error)}") from None
            time.sleep(0.2 * (attempt + 1))
        except RuntimeError as error:  # another version's tables
            raise StoreError(f"storage {shown} cannot be used: {_line(error)}") from None
    raise AssertionError("the last try returns or raises")


def _refuse_mlflow(address: URL) -> None:
    if address.get_backend_name() == "sqlite" and not (address.database and Path(address.database).exists()):
        return
    engine = sqlalchemy.create_engine(address)
    try:
        tables = set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()
    if {"experiments", "runs"} <= tables:
        raise UsageError(_shared(address))


def _same(address: URL, tracking_uri: str) -> bool:
    try:
        other = sqlalchemy.make_url(tracking_uri)
    except ArgumentError:
        return False
    if address.get_backend_name() != other.get_backend_name():
        return False
    if address.get_backend_name() == "sqlite":
        files = [Path(url.database or "").resolve() for url in (address, other)]
        return files[0] == files[1]
    return (address.host, address.port, address.database) == (other.host, other.port, other.database)


def _shared(address: URL) -> str:
    return (
        f"storage {address.render_as_string(hide_password=True)} is MLflow's database, and the two cannot share one "
        "(both number their schema in alembic_version); give Optuna another file or database, such as "
        "sqlite:///optuna.db"
    )


def _line(error: BaseException) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    return lines[0]
