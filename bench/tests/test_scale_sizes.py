"""How a cluster's figures grow with its sizes."""

from bench.scale_sizes import points, slopes


def test_a_slope_is_the_exponent_between_the_base_and_the_largest_size() -> None:
    figures = {"disk_mb.base": 3.0, "disk_mb.rows_1000000": 50.0, "disk_mb.rows_10000000": 300.0}

    assert slopes(figures) == {"disk_mb_slope.rows": 1.0}


def test_a_figure_that_does_not_grow_has_the_slope_0_and_one_without_a_value_none() -> None:
    figures = {"rss_mb.base": 90.0, "rss_mb.stores_100": 90.0, "failed_reads.base": 0.0, "failed_reads.stores_100": 0.0}

    assert slopes(figures) == {"rss_mb_slope.stores": 0.0}


def test_each_point_differs_from_the_base_in_one_size() -> None:
    base, *grown = map(vars, points().values())

    assert [sum(base[size] != other[size] for size in base) for other in grown] == [1] * len(grown)
