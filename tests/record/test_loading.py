"""What is told of a file that was loaded."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ganbench.record.loading import Loaded, Statement


def test_a_summary_is_one_line() -> None:
    run = (Statement(line=1, text="import torch"), Statement(line=12, text="class G(nn.Module):"))
    loaded = Loaded(file="gan.py", whole=False, statements_run=run, stopped_at=30, not_run=((3, 3), (30, 90)))
    assert loaded.summary() == "gan.py: 2 statements run, stopped at line 30; not run: lines 3, 30–90"
    assert Loaded(file="nets.py").summary() == "nets.py: loaded whole"


def test_it_is_a_plain_frozen_value() -> None:
    loaded = Loaded(file="gan.py", switches={"threads": ("1", "3")}, wrote={"log.txt": 5}, not_run=((1, 2),))
    assert Loaded.model_validate_json(loaded.model_dump_json()) == loaded
    with pytest.raises(ValidationError, match="frozen"):
        loaded.file = "other.py"
