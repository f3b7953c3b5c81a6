"""Instances of the query service die, freeze and lose their disks, and reads go on."""

import time

import pytest
from drivers.loaded_cluster import NAMES, LoadedCluster

pytestmark = pytest.mark.timeout(300)

FROZEN_S = 20.0


def test_each_instance_is_killed_in_turn(query: LoadedCluster) -> None:
    for name in NAMES:
        query.instance(name).kill()
        query.instance(name).start()
        query.until_back(name)

        query.assert_all_answered(name)


@pytest.mark.long
def test_an_instance_is_frozen_for_a_while(query: LoadedCluster) -> None:
    query.instance("query-2").pause()
    time.sleep(FROZEN_S)
    query.assert_all_answered("query-2")
    query.instance("query-2").resume()
    query.until_members(3)
    query.until_back("query-2")

    query.assert_all_answered("query-2")


def test_an_instance_loses_its_disk(query: LoadedCluster) -> None:
    query.instance("query-3").drain(60)
    query.instance("query-3").wipe()
    query.instance("query-3").start()
    query.until_back("query-3")

    query.assert_all_answered()
