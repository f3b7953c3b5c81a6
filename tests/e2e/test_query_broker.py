"""The broker goes away and comes back: the query service answers all the while, says how old, and catches up."""

import pytest
from drivers.loaded_cluster import LoadedCluster

from testkit.broker import BrokerProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_the_broker_is_restarted(query: LoadedCluster, query_broker: BrokerProcess) -> None:
    query_broker.stop()
    query.until_steady()
    query_broker.start()
    query.until_written(1000)
    query.until_members(3)
    query.until_current()
    query.until_steady()

    query.assert_all_answered()
