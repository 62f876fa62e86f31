"""Sessions of small networks on a small made-up dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.gan.data import Data
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec

NETWORKS = Path(__file__).with_name("networks.py")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data() -> Data:
    """43 pictures of 1×4×4: with batches of 8, three are dropped at the end of an epoch."""
    pictures = torch.randint(0, 256, (43, 1, 4, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return Data("made up", pictures, (-1.0, 1.0))


@pytest.fixture(scope="session")
def own() -> Callable[..., dict[str, Any]]:
    """A model field that names networks of `networks.py`; `g` and `d` are their arguments."""

    def model(
        generator: str = "Generator",
        discriminator: str = "Discriminator",
        g: dict[str, Any] | None = None,
        d: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {
            "generator": f"{NETWORKS}:{generator}",
            "discriminator": f"{NETWORKS}:{discriminator}",
            "generator_args": g or {},
            "discriminator_args": d or {},
        }

    return model


@pytest.fixture(scope="session")
def spec_of() -> Callable[..., RunSpec]:
    """A spec with small defaults; fields are given as in an experiment file."""

    def spec(**fields: Any) -> RunSpec:
        small = {
            "model": {"name": "mlp", "hidden": 8},
            "latent": {"dim": 6},
            "batch_size": 8,
            "device": "cpu",
            "optimizer": {"g_lr": 1e-2, "d_lr": 1e-2},
        }
        return RunSpec.model_validate(small | fields)

    return spec


@pytest.fixture(scope="session")
def session_of(data: Data, spec_of: Callable[..., RunSpec]) -> Callable[..., Session]:
    """A session of such a spec, on the CPU where no other device is given."""

    def session(*, on: str = "cpu", **fields: Any) -> Session:
        return Session(spec_of(**fields), data, torch.device(on))

    return session
