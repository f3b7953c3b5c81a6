"""Latencies of changes, with the pauses at checkpoints apart."""

import math

import pytest

from bench.processor_latency import Pause, Sample, figures, longest_ms, outside, p99_ms, pauses

STEADY = [Sample(float(at), at + 5.0) for at in range(0, 2_000, 10)]


def test_a_pause_is_the_longest_gap_near_a_commit_with_what_overlaps_it_elsewhere() -> None:
    times = {0: [0.0, 10.0, 20.0, 320.0, 330.0], 1: [0.0, 15.0, 30.0, 300.0, 310.0]}

    assert pauses(times, [100.0]) == [Pause(15.0, 320.0)]


def test_a_gap_far_from_every_commit_is_no_pause() -> None:
    assert pauses({0: [0.0, 300.0]}, [100_000.0]) == []


def test_a_pause_delays_what_is_under_way_in_it_and_what_is_sent_while_the_rest_is_worked_off() -> None:
    pause = Pause(100.0, 200.0)

    assert pause.delays(Sample(90.0, 210.0))
    assert pause.delays(Sample(290.0, 295.0))
    assert not pause.delays(Sample(90.0, 99.0))
    assert not pause.delays(Sample(301.0, 400.0))


def test_samples_outside_pauses_are_those_that_none_delays() -> None:
    samples = [Sample(0.0, 5.0), Sample(110.0, 205.0)]

    assert outside(samples, [Pause(100.0, 200.0)]) == [samples[0]]


def test_a_stamp_before_the_send_is_no_time() -> None:
    assert Sample(10.4, 10.0).took_ms == 0.0


def test_too_few_samples_have_no_99th_percentile() -> None:
    assert p99_ms(STEADY[:99]) == math.inf
    assert p99_ms(STEADY) == 5.0


def test_figures_leave_out_what_pauses_delay_and_tell_the_longest_delay() -> None:
    delayed = [Sample(2_500.0, 2_900.0)]

    latency = figures("realtime", ".latest.1000", [*STEADY, *delayed], [Pause(2_450.0, 2_890.0)])

    assert latency["realtime_ms_max.latest.1000"] == 5.0
    assert latency["checkpoint_pause_ms_max.latest.1000"] == 400.0
    assert latency["realtime_ms_p99_with_checkpoints.latest.1000"] == 5.0


def test_figures_without_pauses_have_no_checkpoint() -> None:
    assert set(figures("microbatch", ".x", STEADY, [])) == {
        "microbatch_ms_p50.x",
        "microbatch_ms_p90.x",
        "microbatch_ms_p99.x",
        "microbatch_ms_max.x",
    }


def test_figures_of_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="samples"):
        figures("realtime", ".x", STEADY[:50], [])


def test_the_longest_that_a_pause_delays_is_that_of_what_was_under_way_in_it() -> None:
    slow_elsewhere = Sample(5_000.0, 5_900.0)

    assert longest_ms([*STEADY, Sample(2_500.0, 2_900.0), slow_elsewhere], Pause(2_450.0, 2_890.0)) == 400.0
