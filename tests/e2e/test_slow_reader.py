"""A client that stops reading delays nobody; it is told the newest of each key when it reads on, or is cut off."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from drivers.gateway_client import Frame, GatewayClient, OrderSocket, client_of, epoch_of, offset_of
from drivers.order_source import OrderSource
from drivers.stalled_reader import (
    LargeOrders,
    StalledReader,
    order_of,
    read_until_shown,
    round_of,
    skipped_in,
    stalled_among_active_readers,
    versions_in,
    watch_all,
)
from websockets.exceptions import ConnectionClosed

from local_stack.running_stack import RunningStack
from testkit.waiting import eventually

ORDERS, ROW_BYTES = 4, 30_000
SKIPPED_WHEN_STALLED = 25 * ORDERS
MAX_ON_THE_WAY = 1_000_000
"""The most bytes that gateway, kernels and the edge's send buffers hold for one socket."""

CLOSED = "ws_edge_sockets_closed_total"


@pytest.fixture
def operator(stack: RunningStack) -> GatewayClient:
    """A phone of staff, who see the orders of all customers."""
    return client_of(stack, "operator")


def changes_told(frames: Sequence[Frame]) -> list[Frame]:
    """Returns the frames that tell changes, and not the order as it was placed."""
    return [frame for frame in frames if round_of(frame) > 0]


def offsets(frames: Sequence[Frame]) -> list[int]:
    """Returns the offsets of the frames of an order; their epochs must be one."""
    assert len({epoch_of(frame) for frame in frames}) == 1
    return [offset_of(frame) for frame in frames]


def assert_rising(frames: Sequence[Frame]) -> None:
    """Asserts that no frame repeats one before it, or goes back behind it."""
    assert all(earlier < later for earlier, later in pairwise(offsets(frames)))


def change_until_it_stalls(orders: LargeOrders, reader: StalledReader) -> None:
    """Changes the orders until newer versions take the place of unsent ones, again and again."""
    enough = reader.skipped() + SKIPPED_WHEN_STALLED
    orders.change_until(lambda: reader.skipped() >= enough)


def read_on(watch: OrderSocket) -> None:
    """Reads until the socket is closed; raises ConnectionClosed."""
    while watch.next():
        continue


def assert_resumes(operator: GatewayClient, orders: LargeOrders, reader: StalledReader) -> None:
    """Asserts that with its tokens the reader gets newest rows that it has not read, then the next, and no others."""
    newest, earlier_frames = orders.round, reader.all_frames()
    with operator.open() as watch:
        watch_all(watch, orders, earlier_frames)
        read_until_shown(watch, orders, earlier_frames)
        orders.change()
        read_until_shown(watch, orders)

    for order_id in orders.ids:
        resumed = [frame for frame in watch.frames if order_of(frame) == order_id]
        missed = [newest] if round_of(reader.frames_of(order_id)[-1]) < newest else []
        assert [round_of(frame) for frame in resumed] == [*missed, newest + 1]
        assert_rising([*reader.frames_of(order_id), *resumed])


def test_who_stops_reading_delays_nobody_and_is_then_told_the_newest_and_what_was_skipped(
    stack: RunningStack, source: OrderSource, operator: GatewayClient
) -> None:
    orders = LargeOrders(source, ORDERS, ROW_BYTES)
    with stalled_among_active_readers(stack, operator, orders) as reader:
        skipped, before = reader.skipped(), len(reader.watch.frames)
        change_until_it_stalls(orders, reader)
        eventually(lambda: reader.assert_active_readers_shown(orders))
        read_until_shown(reader.watch, orders)

        # Only what was on the way before it stalled is old; of the rest there was one version of each order.
        assert (len(reader.watch.frames) - before - ORDERS) * ROW_BYTES < MAX_ON_THE_WAY
        for order_id in orders.ids:
            late = changes_told(reader.frames_of(order_id))
            assert_rising(late)
            assert skipped_in(late[-1]) > 0
            # An edge sends all watchers of a key the same versions, and counts those that one misses as skipped.
            for active_reader in reader.beside:
                assert versions_in(late) == versions_in(changes_told(active_reader.frames_of(order_id)))
        assert sum(map(skipped_in, reader.all_frames())) == reader.skipped() - skipped


@pytest.mark.long
@pytest.mark.timeout(240)
def test_who_reads_nothing_is_cut_off_and_resumes_where_it_was(
    stack: RunningStack, source: OrderSource, operator: GatewayClient
) -> None:
    orders = LargeOrders(source, ORDERS, ROW_BYTES)
    with stalled_among_active_readers(stack, operator, orders) as reader:
        stalled = reader.edge.metric(CLOSED, reason="stalled")
        change_until_it_stalls(orders, reader)
        eventually(lambda: reader.assert_active_readers_shown(orders))

        eventually(lambda: _assert_stalled(reader, stalled + 1), timeout_s=60)
        orders.change()
        eventually(lambda: reader.assert_active_readers_shown(orders))
        with pytest.raises(ConnectionClosed) as closing:
            read_on(reader.watch)

        assert closing.value.rcvd is None
    assert_resumes(operator, orders, reader)


def _assert_stalled(reader: StalledReader, count: float) -> None:
    assert reader.edge.metric(CLOSED, reason="stalled") == count
