"""Results from measured values."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import results
from bench.results import Measured, Metric, Suite, combine, measure_each, percentiles, table, unit_of


def test_percentiles_are_those_of_all_samples() -> None:
    assert percentiles("get_ms", range(101), ".owner") == {
        "get_ms_p50.owner": 50,
        "get_ms_p90.owner": 90,
        "get_ms_p99.owner": 99,
    }


def test_too_few_samples_give_no_percentiles() -> None:
    with pytest.raises(ValueError, match="get_ms: 99 samples"):
        percentiles("get_ms", [1.0] * 99)


def test_runs_are_combined_to_their_median_and_kept() -> None:
    [metric] = combine([{"gets_per_s": 3}, {"gets_per_s": 1}, {"gets_per_s": 20}])

    assert metric == Metric("gets_per_s", 3, "1/s", [3, 1, 20])


def test_a_metric_is_reported_over_the_runs_that_have_it() -> None:
    metrics = combine([{"gets_per_s": 3}, {"get_ms_p50": 7}, {"gets_per_s": 1}])

    assert [(metric.metric, metric.runs) for metric in metrics] == [("gets_per_s", [3, 1]), ("get_ms_p50", [7])]


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("restore_mb_per_s", "MB/s"),
        ("gets_per_s.owner", "1/s"),
        ("get_ms_p50.owner", "ms"),
        ("socket_rss_kb", "KB"),
        ("rss_mb", "MB"),
        ("failover_failed_reads", "reads"),
        ("drain_cpu_us_per_change.realtime", "us"),
        ("state_bytes_per_row.latest", "B"),
        ("resumes_recovered_percent", "%"),
        ("resumes_frames_missed", "frames"),
        ("query_cpu_ms_per_s.edges_1", "ms"),
        ("ours.get_server_us.owner", "us"),
        ("peer.restore_s", "s"),
        ("start_s.14", "s"),
        ("rest_cores.20", "cores"),
        ("rest_rss_mb.20", "MB"),
        ("rest_lag_ms_p99.20", "ms"),
        ("slots.20", "slots"),
        ("restore_start_ms", "ms"),
        ("ours.batch_keys_per_s.unchanged", "1/s"),
    ],
)
def test_the_name_of_a_metric_gives_its_unit(metric: str, unit: str) -> None:
    assert unit_of(metric) == unit


def test_a_measurement_that_fails_is_named_and_the_others_go_on() -> None:
    def fail() -> list[Metric]:
        raise ValueError("no")

    metrics, failed = measure_each({"a": fail, "b": lambda: [Metric("b", 1, "1/s", [1])]})

    assert ([metric.metric for metric in metrics], failed) == (["b"], ["a"])


def test_the_table_has_a_line_for_each_metric() -> None:
    lines = table([Metric("a", 1, "ms", [1]), Metric("long_name", 1234.5, "1/s", [1234.5])]).splitlines()

    assert lines[0].startswith("a          ")
    assert "1,234.5 1/s" in lines[1]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Suite, list[tuple[tuple[str, ...], int]], Path]:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    calls: list[tuple[tuple[str, ...], int]] = []

    def measure(names: Sequence[str], rows: int) -> Measured:
        calls.append((tuple(names), rows))
        return [Metric("gets_per_s", 1, "1/s", [1])], [name for name in names if name == "broken"]

    return Suite("query", "Measures.", ("gets", "gets.more", "broken"), {"rows": 5}, {"x": 1}, measure), calls, tmp_path


Given = tuple[Suite, list[tuple[tuple[str, ...], int]], Path]


def test_a_part_of_a_suite_is_measured_and_not_written(suite: Given) -> None:
    tested, calls, directory = suite

    assert tested.main(["--only", "gets", "--rows", "7"]) == 0
    assert calls == [(("gets", "gets.more"), 7)]
    assert list(directory.iterdir()) == []


def test_a_suite_with_a_failure_ends_with_1_and_is_not_written(suite: Given) -> None:
    tested, _, directory = suite

    assert tested.main([]) == 1
    assert list(directory.iterdir()) == []


def test_a_whole_suite_is_written_with_the_facts_of_the_machine(suite: Given) -> None:
    tested, _, directory = suite
    whole = Suite(tested.name, tested.description, ("gets",), tested.options, tested.settings, tested.measure)

    assert whole.main([]) == 0
    assert json.loads((directory / "query.json").read_text()) == [
        {"metric": "gets_per_s", "value": 1, "unit": "1/s", "runs": [1]}
    ]
    assert json.loads((directory / "query.machine.json").read_text())["settings"] == {"rows": 5, "x": 1}


def test_a_part_is_written_under_a_name_of_its_own(suite: Given) -> None:
    tested, _, directory = suite

    assert tested.main(["--only", "gets", "--rows", "7", "--into", "query-part"]) == 0
    assert sorted(file.name for file in directory.iterdir()) == ["query-part.json", "query-part.machine.json"]
    assert json.loads((directory / "query-part.machine.json").read_text())["settings"] == {"rows": 7, "x": 1}


def test_an_unknown_measurement_is_refused(suite: Given) -> None:
    with pytest.raises(SystemExit):
        suite[0].main(["--only", "nothing"])


def test_the_measurements_are_listed(suite: Given, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite[0].main(["--list"]) == 0
    assert capsys.readouterr().out == "gets\ngets.more\nbroken\n"
