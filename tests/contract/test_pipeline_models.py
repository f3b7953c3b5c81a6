"""The models of the pipelines of orders, bookings, odds and positions, on histories made by hand."""

from drivers.change_history import History
from drivers.pipeline_models import (
    bookings_by_customer,
    matches_about_to_start,
    member_key,
    number_sort,
    odds_by_match,
    orders_by_customer,
    orders_by_item,
    orders_by_key,
    time_sort,
    us_share_holders,
)
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.bookings.v1.booking_pb2 import Booking, BookingChange
from statecast.odds.v1.market_pb2 import Market, MarketChange, Outcome
from statecast.odds.v1.match_pb2 import Match, MatchChange, MatchStatus
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder

BOOKED = Timestamp(seconds=1_724_848_496)
START = Timestamp(seconds=1_724_848_496)


def test_times_are_27_characters_of_utc() -> None:
    assert time_sort(Timestamp(seconds=1_724_848_496, nanos=1_999)) == "2024-08-28T12:34:56.000001Z"


def test_numbers_are_19_digits() -> None:
    assert (number_sort(0), number_sort(2**63 - 1)) == ("0" * 19, "9223372036854775807")


def test_parts_are_parted_by_nul() -> None:
    assert member_key("g", "s", "m") == "g\0s\0m"


def order(order_id: str, *items: str) -> Order:
    return Order(
        order_id=order_id,
        customer_id="c1",
        items=[OrderItem(item_id=item, quantity=1) for item in items],
        placed_at=Timestamp(seconds=1_724_848_496, nanos=123_456_000),
        updated_at=Timestamp(seconds=1_724_848_496),
    )


def order_history() -> History:
    history = History(OrderChange, "orders")
    history.snapshot(order("o1", "tea"))
    history.create(order("o2", "tea", "milk"))
    history.create(order("o3", "milk"))
    history.update("o1", updated_at=Timestamp(seconds=1_724_848_500), items=[OrderItem(item_id="honey", quantity=2)])
    history.delete("o3")
    return history


def test_orders_stand_by_their_id() -> None:
    assert set(orders_by_key(order_history().changes)) == {"o1", "o2"}


def test_a_customers_orders_stand_by_the_time_of_their_last_change() -> None:
    assert set(orders_by_customer(order_history().changes)) == {
        "c1\0" + "2024-08-28T12:35:00.000000Z\0o1",
        "c1\0" + "2024-08-28T12:34:56.000000Z\0o2",
    }


def test_an_order_stands_at_each_of_its_items() -> None:
    assert set(orders_by_item(order_history().changes)) == {
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "honey\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o2",
        "milk\0" + "2024-08-28T12:34:56.123456Z\0o2",
    }


def test_a_booking_stands_where_it_was_handed_over_to_and_a_cancelled_one_nowhere() -> None:
    history = History(BookingChange, "bookings")
    history.snapshot(Booking(booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Wien Hbf"))
    history.create(Booking(booking_id="b2", customer_id="c1", booked_at=BOOKED))
    history.create(Booking(booking_id="b3", customer_id="c2", booked_at=BOOKED))
    history.update("b1", destination="Köln Hbf")
    history.update("b2", customer_id="c2")
    history.delete("b3")

    assert bookings_by_customer(history.changes) == {
        "c1\0" + "2024-08-28T12:34:56.000000Z\0b1": Booking(
            booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Köln Hbf"
        ),
        "c2\0" + "2024-08-28T12:34:56.000000Z\0b2": Booking(booking_id="b2", customer_id="c2", booked_at=BOOKED),
    }


def test_the_markets_of_a_match_stand_by_their_names() -> None:
    history = History(MarketChange, "markets")
    history.create(Market(market_id="k1", match_id="m1", name="goals"))
    history.create(Market(market_id="k2", match_id="m1", name="match winner"))
    history.create(Market(market_id="k3", match_id="m2", name="goals"))
    history.update("k1", outcomes=[Outcome(name="over", odds_thousandths=1900)])
    history.delete("k3")
    expected = odds_by_match(history.changes)

    assert set(expected) == {"m1\0goals\0k1", "m1\0match winner\0k2"}
    assert expected["m1\0goals\0k1"].outcomes[0].odds_thousandths == 1900


def test_a_match_stands_among_those_about_to_start_as_long_as_it_is() -> None:
    history = History(MatchChange, "matches")
    for match_id in ("m1", "m2", "m3"):
        history.create(Match(match_id=match_id, status=MatchStatus.MATCH_STATUS_SCHEDULED, starts_at=START))
        history.update(match_id, status=MatchStatus.MATCH_STATUS_ABOUT_TO_START)
    history.update("m1", starts_at=Timestamp(seconds=1_724_848_556))
    history.update("m2", status=MatchStatus.MATCH_STATUS_IN_PLAY)
    history.delete("m3")

    assert set(matches_about_to_start(history.changes)) == {
        "MATCH_STATUS_ABOUT_TO_START\0" + "2024-08-28T12:35:56.000000Z\0m1"
    }


def position(position_id: str, client: str, amount: int, exchange: str) -> OpenPosition:
    return OpenPosition(position_id=position_id, client=client, amount=amount, exchange=exchange)


def test_only_positions_at_nasdaq_count_for_whom_they_belong_to_in_the_end() -> None:
    history = History(OpenPositionChange, "open_positions")
    history.snapshot(position("p1", "ann", 10, "NASDAQ"))
    history.create(position("p2", "ann", 5, "LON"))
    history.create(position("p3", "ben", 7, "NASDAQ"))
    history.create(position("p4", "cid", 9, "NASDAQ"))
    history.create(position("p5", "dee", 1, "NASDAQ"))
    history.update("p1", amount=12)
    history.update("p2", exchange="NASDAQ")
    history.update("p3", client="ann")
    history.update("p4", exchange="LON")
    history.delete("p5")

    assert us_share_holders(history.changes) == {
        "ann": ShareHolder(client="ann", positions=3, shares=24, position_ids=["p1", "p2", "p3"])
    }
