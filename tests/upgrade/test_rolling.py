"""One process after the other is upgraded to HEAD and taken back to the last release, while clients read and watch."""

from contextlib import ExitStack
from functools import partial

import pytest
from confluent_kafka import Producer
from drivers.gateway_client import gateway_of
from drivers.order_readers import reading_orders
from drivers.update_assertions import assert_told_once
from mixed_versions.upgrade import Upgrade
from mixed_versions.versions import PARTS, KeptWatches

from local_stack.running_stack import RunningStack
from local_stack.settings import QUERIES, ROOT
from testkit.release.environments import cache_directory, last_environment
from testkit.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

FUTURE = b"\xfe\xff of a later format"
"""No StateRecord: its first byte is a tag of a wire type that there is not."""


def test_each_process_is_upgraded_and_taken_back(upgrade: Upgrade, stack: RunningStack) -> None:
    released = last_environment(ROOT, "statecast-client", cache_directory())
    key = stack.file.credentials["operator"].key or ""
    old, new = (KeptWatches(client, gateway_of(stack), key) for client in (released, None))
    with upgrade.load.running() as load, ExitStack() as clients:
        addresses = [query.address for query in stack.file.queries]
        upgrade.readers = clients.enter_context(reading_orders(addresses, load.busy, retry=True))
        with old:
            old.resume({}, load.busy)
            upgrade.watches.append(old)
            for name in PARTS:
                upgrade.to_head(name)
        clients.enter_context(new).resume(old.saved, load.busy)
        upgrade.watches.append(new)
        _send_future_record(upgrade, stack)
        for name in reversed(PARTS):
            upgrade.to_last(name)

    history = load.history
    load.assert_nothing_failed_or_was_missed()
    assert upgrade.failures() == []
    assert {watch.resumed[order_id] for watch in upgrade.watches[1:] for order_id in load.busy} == {True}
    for watch in upgrade.watches:
        for order_id, rows in watch.rows.items():
            assert_told_once(order_id, rows, history)
    assert upgrade.logged_errors() == []


def _send_future_record(upgrade: Upgrade, stack: RunningStack) -> None:
    """Sends a record of a later format, which instances of both versions refuse and name."""
    upgrade.to_last(QUERIES[0])
    producer = Producer({"bootstrap.servers": stack.file.kafka.bootstrap, "partitioner": "murmur2_random"})
    producer.produce("orders-by-key", key=b"order-of-the-future", value=FUTURE)
    assert producer.flush(30) == 0
    for name in QUERIES:
        wait_until(partial(upgrade.has_logged, name, "a record is refused"), f"{name} refuses the record")
