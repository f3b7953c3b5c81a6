"""The broker goes away and comes back: the query service answers all the while, says how old, and catches up."""

import pytest
from drivers.own_broker import OwnBroker
from drivers.query_story import QueryStory

pytestmark = pytest.mark.timeout(300)


def test_the_broker_is_restarted(query: QueryStory, query_broker: OwnBroker) -> None:
    query_broker.stop()
    query.until_steady()
    query_broker.start()
    query.until_written(1000)
    query.until_members(3)
    query.until_current()
    query.until_steady()

    query.assert_all_answered()
