"""How far a run's times can be believed."""

from __future__ import annotations

from ganbench.record.figures import SHARE, timing_of, trust_of
from ganbench.record.run_record import Timing


def rounds(*milliseconds: float) -> Timing:
    return timing_of([[("g", int(ms * 1e6))] for ms in milliseconds], [], 0)


def test_a_steady_run_needs_nothing_more() -> None:
    trust = trust_of(rounds(*[10.0] * 40), 400_000_000, 401_000_000, 0.0, 0.3, 1)
    assert (trust.median_low, trust.median_high, trust.rounds_needed) == (10.0, 10.0, 0)
    assert trust.warnings() == []


def test_an_unsteady_run_says_how_many_rounds_it_lacks() -> None:
    trust = trust_of(rounds(*([5.0, 15.0] * 10)), 200_000_000, 200_000_000, None, 0.3, 1)
    assert trust.rounds_needed > 0
    assert trust.warnings() == [f"unstable: {trust.rounds_needed} more rounds needed for an interval below {SHARE:.0%}"]


def test_parts_that_do_not_add_up_are_told() -> None:
    for wall, told in ((100, False), (101, False), (103, True), (97, True)):
        trust = trust_of(rounds(*[1.0] * 100), 100_000_000, wall * 1_000_000, None, 0.3, 1)
        assert any("add up" in line for line in trust.warnings()) is told


def test_foreign_load_above_the_bound_and_neighbours_are_told() -> None:
    quiet = trust_of(rounds(*[1.0] * 100), 1, 1, 0.3, 0.3, 1)
    assert not quiet.disturbed
    loud = trust_of(rounds(*[1.0] * 100), 1, 1, 1.9, 0.3, 2)
    assert loud.disturbed
    assert "1.90 cores" in loud.warnings()[0]
    assert "2 runs side by side" in loud.warnings()[1]


def test_a_run_without_steady_rounds_claims_nothing() -> None:
    trust = trust_of(Timing(), 0, 0, None, 0.3, 1)
    assert (trust.median_low, trust.accounted, trust.warnings()) == (None, None, [])
