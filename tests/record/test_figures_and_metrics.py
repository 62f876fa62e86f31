"""Figures of cost by hand, and the one table of metrics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganbench.record.figures import SEGMENTS, cost_figures, percentile, timing_of
from ganbench.record.metrics import COUNTERS, CURVES, FINALS, QUALITY, Metric, metric
from ganbench.record.run_record import Timing

MS = 1_000_000


def test_segments_that_come_several_times_a_round_are_added_up() -> None:
    rounds = [
        [("data", 1), ("g", 10), ("g_step", 2), ("g", 20), ("g_step", 3), ("d", 7), ("d_step", 1), ("rest", 4)],
        [],
    ]
    timing = timing_of(rounds, probed=[1], warmup_rounds=0)
    assert timing.segments == list(SEGMENTS) == ["data", "g", "g_step", "d", "d_step", "rest"]
    assert timing.rounds == [[1, 30, 5, 7, 1, 4], [0, 0, 0, 0, 0, 0]]
    assert (timing.probed, timing.warmup_rounds) == ([1], 0)


def test_a_segment_without_a_name_in_the_table_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        timing_of([[("evaluation", 1)]], [], 0)


def row(data: int, g: int, g_step: int, d: int, d_step: int, rest: int) -> list[int]:
    return [part * MS for part in (data, g, g_step, d, d_step, rest)]


def test_figures_by_hand() -> None:
    timing = Timing(
        segments=list(SEGMENTS),
        rounds=[
            row(900, 900, 900, 900, 900, 900),  # warm-up
            row(1, 4, 1, 2, 1, 1),  # 10 ms
            row(800, 800, 800, 800, 800, 800),  # gradient norms were read
            row(1, 6, 2, 6, 3, 2),  # 20 ms
            row(2, 10, 5, 8, 4, 1),  # 30 ms
        ],
        probed=[2],
        warmup_rounds=1,
    )
    assert cost_figures(timing, updates=6, images=64) == pytest.approx(
        {
            "time/round_ms": 20.0,
            "time/round_ms_p95": 30.0,
            "time/g_phase_ms": 8.0,
            "time/d_phase_ms": 9.0,
            "throughput/updates_per_second": 6 * 3 / 0.060,
            "throughput/images_per_second": 64 * 3 / 0.060,
        }
    )


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=6, max_size=6), min_size=3, max_size=12), st.data())
def test_warm_up_and_probed_rounds_are_part_of_no_figure(rounds: list[list[int]], data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, len(rounds)))
    probed = data.draw(st.lists(st.integers(0, len(rounds) - 1), unique=True))
    timing = Timing(segments=list(SEGMENTS), rounds=rounds, probed=probed, warmup_rounds=warmup)
    left = [values for n, values in enumerate(rounds) if n >= warmup and n not in probed]
    alone = Timing(segments=list(SEGMENTS), rounds=left)
    assert timing.steady() == left
    assert cost_figures(timing, 2, 3) == cost_figures(alone, 2, 3)


def test_without_steady_rounds_there_are_no_figures() -> None:
    assert cost_figures(Timing(), 2, 64) == {}
    assert cost_figures(Timing(segments=list(SEGMENTS), rounds=[row(1, 1, 1, 1, 1, 1)], warmup_rounds=1), 2, 64) == {}


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=200),
    st.sampled_from([0.0, 0.05, 0.5, 0.9, 0.95, 0.99, 1.0]),
)
def test_a_percentile_is_the_nearest_rank(values: list[float], share: float) -> None:
    got = percentile(values, share)
    assert got == np.quantile(values, share, method="inverted_cdf")
    assert got in values


# DESIGN 6, word for word; an fd_ metric carries its features in its name and has no row of its own.
DESIGNED_CURVES = "loss/g loss/d loss/d_real loss/d_fake score/real score/fake grad_norm/g grad_norm/d"
DESIGNED_FINALS = """
    time/round_ms time/g_phase_ms time/d_phase_ms time/round_ms_p95
    throughput/updates_per_second throughput/images_per_second
    memory/live_peak_mib memory/live_peak_mib_g_phase memory/live_peak_mib_d_phase memory/rss_peak_mib
    memory/cuda_allocated_peak_mib memory/cuda_reserved_peak_mib memory/cuda_process_mib
    time/train_s time/startup_s
"""


def test_the_table_holds_the_designs_names() -> None:
    assert set(CURVES) == set(DESIGNED_CURVES.split())
    assert set(DESIGNED_FINALS.split()) <= set(FINALS)
    assert COUNTERS == ("rounds", "g_updates", "d_updates", "real_images", "seconds")


def test_every_figure_of_cost_has_a_row() -> None:
    timing = Timing(segments=list(SEGMENTS), rounds=[row(1, 1, 1, 1, 1, 1)])
    assert set(cost_figures(timing, 2, 64)) <= set(FINALS)


@pytest.mark.parametrize("key", [*CURVES, *FINALS, *(f"quality/{name}" for name in QUALITY)])
def test_every_row_says_what_it_is(key: str) -> None:
    found = metric(key)
    assert found.title
    assert found.direction in (-1, 0, 1)
    assert ("ms" in key.split("_")) == (found.unit == "ms")
    assert ("mib" in key.split("_")) == (found.unit == "MiB")


@pytest.mark.parametrize("key", FINALS)
def test_less_time_and_memory_and_more_throughput_is_better(key: str) -> None:
    assert metric(key).direction == (1 if key.startswith("throughput/") else -1)


def test_quality_metrics_have_rows_whatever_their_features() -> None:
    assert metric("quality/fd_pixels") == Metric("Fréchet distance (pixels)", "", -1)
    assert metric("quality/fd_random_conv").title == "Fréchet distance (random conv)"
    assert metric("quality/coverage") == QUALITY["coverage"]
    assert metric("quality/my_own") == Metric("my own", "", 0)
    with pytest.raises(KeyError):
        metric("time/nothing")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (12.345, "12.3"),
        (999.4, "999"),
        (999.7, "1000"),
        (-999.7, "-1000"),
        (1234.5, "1234"),
        (1e6, "1000000"),
        (1e-5, "1e-05"),
        (float("inf"), "inf"),
    ],
)
def test_values_are_printed_with_their_digits(value: float, text: str) -> None:
    assert Metric("m", "", 0).text(value) == text


@given(st.floats(0.01, 1e9), st.integers(2, 5))
def test_a_printed_value_is_close_and_without_an_exponent(value: float, digits: int) -> None:
    text = Metric("m", "", 0, digits).text(value)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))
