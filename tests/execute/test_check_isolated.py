"""Networks are looked over in a process of their own: what happens there ends nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganbench.errors import DatasetError, UserCodeError
from ganbench.execute.check import Checked, check
from ganbench.execute.local import LocalExecutor
from ganbench.spec.run import RunSpec

GOOD = """
from torch import nn

class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.Tanh())
    def forward(self, z):
        return self.net(z).view(-1, 1, 8, 8)

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    def forward(self, x):
        return self.net(x)
"""


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., Checked]:
    def of(source: str, **fields: Any) -> Checked:
        file = tmp_path / "networks_of_mine.py"
        file.write_text(source)
        model = {"generator": f"{file}:G", "discriminator": f"{file}:D"}
        return check(LocalExecutor(), RunSpec.model_validate({"model": model, "device": "cpu", **fields}), False)

    return of


def test_what_is_found_comes_back(checked: Callable[..., Checked]) -> None:
    clean = checked(GOOD)
    assert clean.looked.can_run
    assert not clean.looked.findings
    assert clean.lines == ("digits: 1797 items of shape (1, 8, 8)",)
    sigmoid = checked(GOOD.replace("nn.Linear(64, 1))", "nn.Linear(64, 1), nn.Sigmoid())"))
    assert [finding.code for finding in sigmoid.looked.findings] == ["sigmoid-into-logits"]


@pytest.mark.parametrize("where", ["super().__init__()", "def forward(self, x):"])
def test_a_network_that_ends_the_process(checked: Callable[..., Checked], where: str) -> None:
    crashing = GOOD.replace(where, f"{where}\n        __import__('os')._exit(3)", 1)
    looked = checked(crashing).looked
    assert [finding.code for finding in looked.findings] == ["process-ended"]
    assert not looked.can_run


def test_what_cannot_be_loaded_is_a_users_error(checked: Callable[..., Checked]) -> None:
    with pytest.raises(UserCodeError, match="SyntaxError at line 2"):
        checked("\nclass G(:\n")
    with pytest.raises(UserCodeError, match=r"has no 'D'"):
        checked(GOOD.replace("class D", "class E"))
    with pytest.raises(UserCodeError, match=r"generator: G\(\) of .* raised TypeError"):
        checked(GOOD.replace("def __init__(self)", "def __init__(self, width)", 1))
    with pytest.raises(DatasetError):
        checked(GOOD, dataset={"name": "mnist", "root": "nowhere"})


def test_more_in_a_batch_than_there_is(checked: Callable[..., Checked]) -> None:
    looked = checked(GOOD, batch_size=2000).looked
    assert [finding.code for finding in looked.findings] == ["batch-larger-than-data"]
    assert "1797 items" in looked.findings[0].evidence
