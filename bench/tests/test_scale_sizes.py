"""How a cluster's figures grow with its sizes."""

from dataclasses import replace

from bench.scale_sizes import AXES, slopes


def test_a_slope_is_the_exponent_between_the_base_and_the_largest_size() -> None:
    figures = {"disk_mb.base": 3.0, "disk_mb.rows_1000000": 50.0, "disk_mb.rows_10000000": 300.0}

    assert slopes(figures) == {"disk_mb_slope.rows": 1.0}


def test_a_figure_that_does_not_grow_has_the_slope_0_and_one_without_a_value_none() -> None:
    figures = {"rss_mb.base": 90.0, "rss_mb.stores_100": 90.0, "failed_reads.base": 0.0, "failed_reads.stores_100": 0.0}

    assert slopes(figures) == {"rss_mb_slope.stores": 0.0}


def test_each_point_of_an_axis_differs_from_the_first_in_one_size() -> None:
    for axis, (first, *grown) in AXES.items():
        assert [replace(sizes, **{axis: getattr(first, axis)}) for sizes in grown] == [first] * len(grown)


def test_points_are_named_by_what_differs_from_the_base() -> None:
    assert [sizes.point for sizes in AXES["instances"]] == [
        "partitions_64",
        "partitions_64_instances_10",
        "partitions_64_instances_50",
    ]


def test_a_slope_along_instances_begins_where_they_share_more_partitions() -> None:
    figures = {
        "rss_mb.base": 50.0,
        "rss_mb.partitions_64": 100.0,
        "rss_mb.partitions_64_instances_50": 100.0,
    }

    assert slopes(figures) == {"rss_mb_slope.instances": 0.0}
