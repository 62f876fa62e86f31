"""Findings: their order, and what they are outside of Python."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ganbench.record.finding import Finding, Looked, Severity, by_severity


def finding(code: str, severity: Severity) -> Finding:
    return Finding(code, severity, "what", "evidence", "advice")


def test_errors_come_first_and_each_finding_once() -> None:
    given = [finding("c", "note"), finding("b", "warning"), finding("a", "error"), finding("d", "warning")]
    assert [one.code for one in by_severity([*given, given[1]])] == ["a", "b", "d", "c"]


@pytest.mark.parametrize(("severity", "can_run"), [("error", False), ("warning", True), ("note", True)])
def test_only_an_error_keeps_from_running(severity: Severity, can_run: bool) -> None:
    looked = Looked((finding("a", severity),), 3)
    assert looked.can_run is can_run
    assert looked.plain()["can_run"] is can_run


def test_a_further_finding_is_sorted_in() -> None:
    looked = Looked((finding("a", "note"),), 3, ("left",)).with_finding(finding("b", "error"))
    assert ([one.code for one in looked.findings], looked.made, looked.left_out) == (["b", "a"], 4, ("left",))


def test_json_and_back() -> None:
    one = finding("sigmoid-into-logits", "warning")
    plain = json.loads(json.dumps(Looked((one,), 1).plain()))
    assert Finding(**plain["findings"][0]) == one
    assert plain["checks"] == 1


def test_a_finding_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding("a", "note").severity = "error"  # type: ignore[misc]
