"""Instances of the query service come and go in order, and nobody who reads notices."""

import pytest
from drivers.loaded_cluster import NAMES, LoadedCluster

pytestmark = pytest.mark.timeout(300)

DRAIN_S = 60


def test_all_instances_are_restarted_one_after_the_other(query: LoadedCluster) -> None:
    for name in NAMES:
        query.instance(name).drain(DRAIN_S)
        query.instance(name).start()
        query.until_back(name)

        query.assert_all_answered()


def test_a_fourth_instance_joins(query: LoadedCluster) -> None:
    query.cluster.start("query-4")
    query.read_through("query-4")
    query.until_members(4)
    query.until_steady()

    query.assert_all_answered()
