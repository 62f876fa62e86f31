"""How a run ended, and the record that keeps all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ganbench.errors import ErrorKind, classify
from ganbench.record.outcome import Outcome
from ganbench.record.run_record import SCHEMA_VERSION, RunRecord, Timing
from ganbench.spec.run import RunSpec

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("outcome", "is_result", "status"),
    [
        (Outcome.OK, True, "FINISHED"),
        (Outcome.DIVERGED, True, "FAILED"),
        (Outcome.RAISED, True, "FAILED"),
        (Outcome.OUT_OF_MEMORY, True, "FAILED"),
        (Outcome.TIMED_OUT, True, "KILLED"),
        (Outcome.CRASHED, True, "FAILED"),
        (Outcome.INTERRUPTED, False, "KILLED"),
        (Outcome.SKIPPED, False, "KILLED"),
    ],
)
def test_each_outcome_is_a_result_or_not_and_has_a_status(outcome: Outcome, is_result: bool, status: str) -> None:
    assert outcome.is_result is is_result
    assert outcome.mlflow_status == status


def test_outcomes_are_spelled_as_the_tag_is() -> None:
    assert " | ".join(Outcome) == "ok | diverged | raised | out_of_memory | timed_out | crashed | interrupted | skipped"


@pytest.mark.parametrize(
    ("type_name", "message", "kind"),
    [
        ("RuntimeError", "Trying to backward through the graph a second time (or ...)", ErrorKind.GRAPH_FREED),
        (
            "RuntimeError",
            "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.…",
            ErrorKind.MODIFIED_IN_PLACE,
        ),
        (
            "RuntimeError",
            "torch.compile with aot_autograd does not currently support double backward",
            ErrorKind.DOUBLE_BACKWARD_UNSUPPORTED,
        ),
        (
            "RuntimeError",
            "This backward function was compiled with non-empty donated buffers",
            ErrorKind.DONATED_BUFFERS,
        ),
        ("RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn", ErrorKind.NO_PATH),
        (
            "RuntimeError",
            "One of the differentiated Tensors appears to not have been used in the graph",
            ErrorKind.NO_PATH,
        ),
        ("OutOfMemoryError", "anything", ErrorKind.OUT_OF_MEMORY),
        ("MemoryError", "", ErrorKind.OUT_OF_MEMORY),
        ("RuntimeError", "CUDA error: out of memory", ErrorKind.OUT_OF_MEMORY),
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", ErrorKind.SHAPE_MISMATCH),
        ("ValueError", "something else", ErrorKind.OTHER),
        ("ValueError", "", ErrorKind.OTHER),
    ],
)
def test_a_foreign_error_is_told_by_the_stable_part(type_name: str, message: str, kind: ErrorKind) -> None:
    assert classify(type_name, message) is kind
    assert classify(type_name, message.upper()) is kind


def record(**more: Any) -> RunRecord:
    spec = more.pop("spec", RunSpec())
    return RunRecord(
        **{
            "version": "0.1",
            "experiment": "e",
            "sweep": "abc",
            "position": 3,
            "run_key": spec.run_key,
            "arm_key": spec.arm_key,
            "spec": spec,
            "outcome": Outcome.OK,
            **more,
        }
    )


SPECS = [
    {},
    {"ratio": "5:1", "strategy": "reuse", "optimizer": {"name": "sgd", "momentum": 0.9}},
    {"model": {"name": "dcgan", "width": 3}, "dataset": {"name": "mnist", "root": "elsewhere", "range": [0, 1]}},
    {"model": "mlp2d", "dataset": "grid25", "budget": "0.5 seconds", "evaluate": {"every": "0.1 seconds"}},
    {"model": {"generator": "a.py:G", "discriminator": "a.py:D", "generator_args": {"x": [1, None, {"y": "5:1"}]}}},
]


@pytest.mark.parametrize("fields", SPECS, ids=str)
def test_a_record_comes_back_from_its_json(fields: dict[str, Any]) -> None:
    full = record(
        spec=RunSpec.model_validate(fields),
        outcome=Outcome.RAISED,
        error_kind=ErrorKind.GRAPH_FREED,
        error="RuntimeError: «x»",
        traceback="Traceback …\n  line",
        diverged_at_update=7,
        schedule="G G D",
        counters={"rounds": 1.0, "seconds": 0.1},
        overshoot=2.5,
        skipped_steps={"g": 1},
        data={"dropped": 3, "deep": [1, None, {"a": 0.1}]},
        judged_by={"features": "pixels"},
        floor={"fd_pixels": 1e-300},
        finals={"time/round_ms": 0.1 + 0.2},
        checksums={"weights": "ab"},
        host={"cpu": "x"},
        timing=Timing(segments=["g"], rounds=[[10**15 + 1]], probed=[0], warmup_rounds=1),
        output="\x1b[0m",
        started_at=1.1,
        ended_at=2.2,
    )
    again = RunRecord.model_validate_json(full.model_dump_json())
    assert again == full
    assert again.spec.run_key == full.run_key
    assert again.model_dump_json() == full.model_dump_json()
    assert set(json.loads(full.model_dump_json())) == set(RunRecord.model_fields)


@given(
    st.dictionaries(st.text(), FINITE),
    st.lists(st.lists(st.integers(0, 2**62), max_size=3), max_size=4),
    st.text(),
    FINITE,
)
def test_numbers_and_texts_come_back_exactly(
    finals: dict[str, float], rounds: list[list[int]], text: str, at: float
) -> None:
    full = record(finals=finals, timing=Timing(rounds=rounds), error=text, output=text, started_at=at)
    assert RunRecord.model_validate_json(full.model_dump_json()) == full


def test_a_record_says_its_version() -> None:
    assert json.loads(record().model_dump_json())["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize("place", ["", "timing", "spec"])
def test_a_field_of_another_schema_is_refused(place: str) -> None:
    plain = json.loads(record().model_dump_json())
    (plain[place] if place else plain)["novelty"] = 1
    with pytest.raises(ValidationError, match="novelty"):
        RunRecord.model_validate_json(json.dumps(plain))


@pytest.mark.parametrize(
    ("fields", "outcome", "kind", "as_declared"),
    [
        ({}, Outcome.OK, None, True),
        ({}, Outcome.DIVERGED, None, False),
        ({}, Outcome.RAISED, ErrorKind.OTHER, False),
        ({"strategy": "reuse"}, Outcome.RAISED, ErrorKind.GRAPH_FREED, True),
        ({"strategy": "reuse"}, Outcome.RAISED, ErrorKind.MODIFIED_IN_PLACE, False),
        ({"strategy": "reuse"}, Outcome.OK, None, False),
        ({"strategy": "reuse"}, Outcome.CRASHED, ErrorKind.GRAPH_FREED, False),
        ({"strategy": "retain_as_published"}, Outcome.RAISED, ErrorKind.MODIFIED_IN_PLACE, True),
        ({"strategy": "retain_as_published"}, Outcome.OK, None, False),
        ({"strategy": "retain_as_published", "optimizer": {"fused": True}}, Outcome.OK, None, True),
        ({"strategy": "retain_as_published", "order": "d_first"}, Outcome.OK, None, True),
        ({"strategy": "retain_deferred", "compile": True}, Outcome.RAISED, ErrorKind.DONATED_BUFFERS, True),
        ({"strategy": "detach_as_published"}, Outcome.OK, None, True),
    ],
    ids=str,
)
def test_a_run_alone_is_held_against_the_table(
    fields: dict[str, Any], outcome: Outcome, kind: ErrorKind | None, as_declared: bool
) -> None:
    found = record(spec=RunSpec.model_validate(fields), outcome=outcome, error_kind=kind)
    assert found.came_out_as_declared is as_declared
