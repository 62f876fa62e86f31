"""Small searches that train nothing, for tests. Processes started by tests import this module by name."""

from __future__ import annotations

import sys
import time
from typing import Any

from ganbench.search.lock import Lock
from ganbench.search.storage import open_storage
from ganbench.search.study import Claim, SharedStudy
from ganbench.search.told import Told
from ganbench.spec.search import SearchSpec


def search_spec(**block: Any) -> SearchSpec:
    """A search over eight ratios by default, eight trials."""
    fields = {
        "name": "small",
        "device": "cpu",
        "dataset": "ring8",
        "model": "mlp2d",
        "budget": "60 updates",
        "search": {"space": {"ratio": {"g": "1..4", "d": "1..2"}}, "trials": 8, **block},
    }
    return SearchSpec.from_fields(fields, "test")


def study_of(spec: SearchSpec, url: str) -> SharedStudy:
    """The search's study in a storage."""
    return SharedStudy(spec, open_storage(url), Lock(url, spec.name))


def value_at(claim: Claim) -> Told:
    """What a trial is told without training: a value that only its point decides."""
    return Told("complete", "ok", values=(float(claim.params["g_steps"]) + 10 * float(claim.params["d_steps"]),))


def work(url: str, pause: float) -> None:
    """Carry out trials until none is left; each takes `pause` seconds. Prints the number of each."""
    study = study_of(search_spec(), url)
    while isinstance(claim := study.claim(), Claim):
        print(claim.trial.number, flush=True)
        time.sleep(pause)
        study.tell(claim, value_at(claim))


if __name__ == "__main__":
    work(sys.argv[1], float(sys.argv[2]))
