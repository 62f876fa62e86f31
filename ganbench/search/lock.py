"""One process at a time for what must not interleave: claiming a trial, and the end of a search.

The lock is the operating system's or the database's own: it is free again as soon as its holder is dead.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError

from ganbench.errors import StoreError, UsageError
from ganbench.search.storage import JOURNAL, address_of, described
from ganbench.spec.value import content_hash


class Lock:
    """Of one study in one storage. `with lock.held("claim"):` blocks until no other process is inside that part.

    Files have a second file beside them, `FILE.claim.lock`; it is left there, for a lock on a file that may be removed
    meanwhile is none.
    """

    def __init__(self, storage: str, study: str) -> None:
        self._study = study
        self._file: Path | None = None
        self._engine: sqlalchemy.Engine | None = None
        if storage.startswith(JOURNAL):
            self._file = Path(storage.removeprefix(JOURNAL)).expanduser()
            return
        address = address_of(storage)
        if address.get_backend_name() == "sqlite":
            self._file = Path(address.database) if address.database else None
        elif address.get_backend_name() == "postgresql":
            # A connection of its own for as long as the lock is held.
            self._engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.NullPool)
        else:
            raise UsageError(
                f"storage {described(storage)}: processes share a study in sqlite, PostgreSQL or a journal file; "
                "take one of these"
            )

    @contextmanager
    def held(self, part: str) -> Iterator[None]:
        """Inside, no other process is in the same part of the study.

        Raises:
            StoreError: the database is not there.
        """
        if self._file is not None:
            # By name, not by study: a claim is short, and a file more for every study is litter.
            with self._file.with_name(f"{self._file.name}.{part}.lock").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
        elif self._engine is not None:
            key = int(content_hash({"study": self._study, "part": part}, 15), 16)
            try:
                connection = self._engine.connect()
            except SQLAlchemyError as error:
                raise StoreError(f"the study's database is not there: {str(error).splitlines()[0]}") from None
            with connection:
                connection.execute(sqlalchemy.text("select pg_advisory_lock(:key)"), {"key": key})
                yield
        else:  # in the memory of this process
            yield
