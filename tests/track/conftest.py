"""One small sweep on a real sqlite store, made once for the tests that only look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stores import Carried, carry_out, small_sweep

from ganbench.track.store import Store


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Carried]:
    place = tmp_path_factory.mktemp("store")
    store = Store(f"sqlite:///{place}/mlflow.db")
    result, _ = carry_out(small_sweep(), store, place / "log")
    return Carried(store, result, place)
