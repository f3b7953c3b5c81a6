"""The page of plots that says what a cluster of a given size needs."""

import json
from pathlib import Path

import pytest

from bench.scale import MEASUREMENTS
from bench.scale_page import METRICS, Demand, write_page
from bench.scale_sizes import AXES, LARGE, Sizes

DEMAND = Demand(rows=8_000_000, row_bytes=400, instances=4, stores=2, partitions=16)


def _figure(metric: str, sizes: Sizes) -> float:
    match metric:
        case "rss_mb":
            return 80 + sizes.rows / 1e5 + sizes.partitions / 4
        case "disk_mb":
            return sizes.rows * 2e-4
        case "listing_bytes_per_s":
            return float(sizes.instances**2 * sizes.stores)
        case "failover_failed_reads":
            return 0
    return 5


def _write_results(directory: Path) -> None:
    clusters = {sizes.point: sizes for points in AXES.values() for sizes in points} | {LARGE.point: LARGE}
    metrics = [
        {"metric": f"{metric}.{point}", "value": _figure(metric, sizes)}
        for metric in METRICS
        for point, sizes in clusters.items()
    ]
    (directory / "scale.json").write_text(json.dumps(metrics))
    machine = {"cores": 2, "memory_gib": 4.0, "settings": {"replicas": 2, "row_bytes": 200}}
    (directory / "scale.machine.json").write_text(json.dumps(machine))


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the results and the page of a made-up cluster."""
    directory = tmp_path_factory.mktemp("docs")
    _write_results(directory)
    write_page(directory, directory, DEMAND)
    return directory


@pytest.fixture
def page(docs: Path) -> str:
    return (docs / "sizing.md").read_text()


def test_each_axis_has_its_plot_of_every_metric_that_is_not_0(docs: Path, page: str) -> None:
    for axis in AXES:
        plot = (docs / "sizing" / f"{axis}.svg").read_text()

        assert f"](sizing/{axis}.svg)" in page
        assert [metric for metric, name in METRICS.items() if name not in plot] == ["failover_failed_reads"]


def test_the_page_has_the_slopes_of_the_results(page: str) -> None:
    [rows, partitions, instances, stores] = page.split("\n### ")[1:]

    assert "| disk of an instance, MB | 20 | 200 | 2,000 | 1.00 | 10 |" in rows
    assert "| disk of an instance, MB | 20 | 20 | 20 | 0.00 | 1 |" in partitions
    assert "| listing of partitions at rest, bytes/s | 4 | 100 | 2,500 | 2.00 | 100 |" in instances
    assert "| listing of partitions at rest, bytes/s | 4 | 40 | 400 | 1.00 | 10 |" in stores


def test_the_page_says_in_words_what_grows(page: str) -> None:
    [rows, _, _, _] = page.split("\n### ")[1:]

    assert "Grows at least in step: disk of an instance, MB." in rows
    assert "Stays: restart of one instance with its disk, s; " in rows


def test_the_example_adds_what_rows_and_partitions_need_to_what_is_fixed(page: str) -> None:
    assert "| memory, MB | `80.0 + 10.00 * b * n / 1,000,000 + 0.250 * p` | 164 |" in page
    assert "| disk, MB | `0.0 + 200.00 * b * n / 1,000,000 + 0.000 * p` | 1,600 |" in page
    assert (
        "all members together exchange 37 bytes/s" in page
    )  # with the broker 5, by the listing the square of 4 for each store
    assert "this formula gives 250,005 bytes/s; 250,005 bytes/s were measured" in " ".join(page.split())


def test_lines_are_as_narrow_as_those_of_other_pages(page: str) -> None:
    assert max(len(line) for line in page.splitlines() if not line.startswith("|")) <= 130


def test_a_second_run_writes_the_same_bytes(docs: Path) -> None:
    files = [docs / "sizing.md", *sorted((docs / "sizing").iterdir())]
    first = [file.read_bytes() for file in files]
    write_page(docs, docs, DEMAND)

    assert [file.read_bytes() for file in files] == first


def test_results_without_an_axis_are_refused(tmp_path: Path) -> None:
    _write_results(tmp_path)
    (tmp_path / "scale.json").write_text('[{"metric": "first_map_2x1_ms", "value": 0.4}]')

    with pytest.raises(ValueError, match="no figures of rows: run `make bench-scale`"):
        write_page(tmp_path, tmp_path)


def test_the_large_cluster_is_measured() -> None:
    assert {f"{name}.{LARGE.point}" for name in ("listing", "membership")} <= MEASUREMENTS.keys()
