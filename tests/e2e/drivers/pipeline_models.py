"""The model of each pipeline: the content that its topic must have, in plain Python from its sources' records alone."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from drivers.change_history import ordered, primary_key, row_of, rows_after
from statecast.bookings.v1.booking_pb2 import BookingChange
from statecast.odds.v1.market_pb2 import MarketChange
from statecast.odds.v1.match_pb2 import MatchChange, MatchStatus
from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.sales.v1.city_sales_pb2 import CitySales
from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import CustomerType, DeliveryType, Invoice, InvoiceLine
from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.sales.v1.masked_line_pb2 import MaskedLine
from statecast.sales.v1.store_pb2 import StoreChange
from statecast.sales.v1.store_sales_pb2 import StoreSales
from statecast.sales.v1.store_with_sales_pb2 import StoreWithSales

Keyed = dict[str, Any]
"""The live records of a keyed topic: the text of the key, and the payload's message."""

Plain = Counter[bytes]
"""The values of a plain topic, in `canonical` form, with the number of records of each."""

NUL = "\0"
Key = tuple[str, str, str]
State = dict[Key, Order]
EXCHANGE = "NASDAQ"
HOUR_S = 3600
CENTS_PER_POINT = 100
DIGITS_SHOWN = 4
ORDERS: Mapping[str, type[Message]] = {"orders": OrderChange}
INVOICES: Mapping[str, type[Message]] = {"invoices": Invoice}
SHOPS: Mapping[str, type[Message]] = {"stores": StoreChange}


def member_key(group: str, sort: str, member: str) -> str:
    """Returns the key of one of many members of a group."""
    return NUL.join((group, sort, member))


def time_sort(time: Timestamp) -> str:
    """Returns the time as UTC with six decimals: 27 characters."""
    return time.ToDatetime(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def number_sort(number: int) -> str:
    """Returns the number, 0 or more, as 19 digits."""
    return f"{number:019d}"


def canonical(message: Message) -> bytes:
    """Encodes a message deterministically, so that equal messages have the same bytes."""
    return message.SerializeToString(deterministic=True)


def canonical_json(value: Any, message: type[Message]) -> bytes:
    """Returns the row in canonical form, from its JSON."""
    return canonical(json_format.ParseDict(value, message()))


def plain(messages: Iterable[Message]) -> Plain:
    """Returns the multiset of the messages."""
    return Counter(map(canonical, messages))


STORES: dict[str, Callable[[Order], set[Key]]] = {
    "orders-by-key": lambda order: {(order.order_id, "", "")},
    "orders-by-customer": lambda order: {(order.customer_id, time_sort(order.updated_at), order.order_id)},
    "orders-by-item": lambda order: {
        (line.item_id, time_sort(order.placed_at), order.order_id) for line in order.items
    },
}
"""The keys of an order in each store of orders."""


def expected(orders: Iterable[Order], keys: Callable[[Order], set[Key]]) -> State:
    """Returns the whole content of the store that keeps `keys` of each order."""
    return {key: order for order in orders for key in keys(order)}


def orders_by_key(changes: Iterable[OrderChange]) -> Keyed:
    """Returns the newest row of each order."""
    return {group: order for (group, _, _), order in _state("orders-by-key", changes).items()}


def orders_by_customer(changes: Iterable[OrderChange]) -> Keyed:
    """Returns the orders of each customer, by the time of their last change."""
    return {member_key(*key): order for key, order in _state("orders-by-customer", changes).items()}


def orders_by_item(changes: Iterable[OrderChange]) -> Keyed:
    """Returns the orders that hold each item, by the time of their placing."""
    return {member_key(*key): order for key, order in _state("orders-by-item", changes).items()}


def _state(store: str, changes: Iterable[OrderChange]) -> State:
    return expected(rows_after(changes), STORES[store])


def bookings_by_customer(changes: Iterable[BookingChange]) -> Keyed:
    """Returns the bookings of each customer, by the time of booking."""
    return {member_key(row.customer_id, time_sort(row.booked_at), row.booking_id): row for row in rows_after(changes)}


def odds_by_match(changes: Iterable[MarketChange]) -> Keyed:
    """Returns the markets of each match, by name."""
    return {member_key(row.match_id, row.name, row.market_id): row for row in rows_after(changes)}


def matches_about_to_start(changes: Iterable[MatchChange]) -> Keyed:
    """Returns the matches about to start, under the name of that status, by their start."""
    group = "MATCH_STATUS_ABOUT_TO_START"
    return {
        member_key(group, time_sort(row.starts_at), row.match_id): row
        for row in rows_after(changes)
        if row.status == MatchStatus.Value(group)
    }


def us_share_holders(changes: Iterable[OpenPositionChange]) -> Keyed:
    """Returns the shares that each client holds at the exchange; nothing of a client without positions there."""
    holders: Keyed = {}
    for row in rows_after(changes):
        if row.exchange == EXCHANGE:
            holder = holders.setdefault(row.client, ShareHolder(client=row.client))
            holder.positions += 1
            holder.shares += row.amount
            holder.position_ids.append(row.position_id)
    for holder in holders.values():
        holder.position_ids.sort()
    return holders


def positions_by_key(changes: Iterable[OpenPositionChange]) -> Keyed:
    """Returns the newest row of each position."""
    return {row.position_id: row for row in rows_after(changes)}


def matches_by_sport_and_status(changes: Iterable[MatchChange]) -> Keyed:
    """Returns the matches of each sport in each status, by their start."""
    return {
        member_key(f"{row.sport}:{MatchStatus.Name(row.status)}", time_sort(row.starts_at), row.match_id): row
        for row in rows_after(changes)
    }


def each_once(events: Iterable[Any]) -> list[Any]:
    """Returns the rows that events are, of which some may come again."""
    return list({primary_key(row): row for row in events}.values())


def stores_by_key(changes: Iterable[StoreChange]) -> Keyed:
    """Returns the newest row of each store."""
    return {row.store_id: row for row in rows_after(changes)}


def invoices_by_store(invoices: Iterable[Invoice]) -> Keyed:
    """Returns the invoices of each store, by the time when they were made."""
    return {member_key(row.store_id, time_sort(row.created_at), row.invoice_number): row for row in each_once(invoices)}


def points(invoice: Invoice) -> int:
    """Returns the points that the invoice earns a PRIME customer."""
    return invoice.total_amount_cents // CENTS_PER_POINT


def rewards_by_customer(invoices: Iterable[Invoice]) -> Keyed:
    """Returns the sums of the PRIME invoices of each card; nothing of a card without them."""
    rewards: Keyed = {}
    for row in each_once(invoices):
        if row.customer_type == CustomerType.CUSTOMER_TYPE_PRIME:
            card = row.customer_card_no
            customer = rewards.setdefault(card, CustomerRewards(customer_card_no=card))
            customer.invoices += 1
            customer.spent_cents += row.total_amount_cents
            customer.points += points(row)
    return rewards


def invoices_with_store(records: Iterable[Invoice | StoreChange]) -> Mapping[str, list[InvoiceWithStore]]:
    """Returns all possible rows of each invoice: without its store, and with each row that the store ever had.

    No topic says when the invoice was joined, and a later change of the store does not write the invoice again.
    """
    invoices, changes = _by_kind(records)
    rows = [row_of(change) for change in ordered(changes) if change.HasField("after")]
    stores = {canonical(row): row for row in rows}.values()  # the same names come again
    return {
        row.invoice_number: [
            InvoiceWithStore(invoice=row),
            *(InvoiceWithStore(invoice=row, store=store) for store in stores if store.store_id == row.store_id),
        ]
        for row in each_once(invoices)
    }


def _by_kind(records: Iterable[Invoice | StoreChange]) -> tuple[list[Invoice], list[StoreChange]]:
    both = list(records)
    invoices = [each for each in both if isinstance(each, Invoice)]
    return invoices, [each for each in both if isinstance(each, StoreChange)]


def sales_by_city(records: Iterable[Invoice | StoreChange]) -> Keyed:
    """Returns the sales of the stores of each city: an invoice counts where its store stood when the two were joined.

    The time of the join is on no topic. So no store with invoices may move (AssertionError), and each must be known
    before its first invoice: a simulator makes the stores first, and a first load waits for them.
    """
    sales: Keyed = {}
    for joined in invoices_with_store(records).values():
        cities = {each.store.city for each in joined if each.HasField("store")}
        invoice = joined[0].invoice
        assert len(cities) <= 1, f"{invoice.store_id} has moved: no topic says where its invoices count"
        for city in cities:
            total = sales.setdefault(city, CitySales(city=city))
            total.invoices += 1
            total.amount_cents += invoice.total_amount_cents
    return sales


def sales_by_store(invoices: Iterable[Invoice]) -> Keyed:
    """Returns the sums of the invoices of each store; nothing of a store without them."""
    sales: Keyed = {}
    for row in each_once(invoices):
        store = sales.setdefault(row.store_id, StoreSales(store_id=row.store_id))
        store.invoices += 1
        store.amount_cents += row.total_amount_cents
    return sales


def stores_with_sales(records: Iterable[Invoice | StoreChange]) -> Keyed:
    """Returns each store with its sales, if it has any."""
    invoices, changes = _by_kind(records)
    sales = sales_by_store(invoices)
    return {key: StoreWithSales(store=store, sales=sales.get(key)) for key, store in stores_by_key(changes).items()}


def hourly_sales_by_store(invoices: Iterable[Invoice]) -> Keyed:
    """Returns the sales of each store in each hour, under the key of store, beginning and end of the hour."""
    sales: Keyed = {}
    for row in each_once(invoices):
        start, end = _hour(row)
        key = member_key(row.store_id, time_sort(start), time_sort(end))
        hour = sales.setdefault(key, HourlySales(store_id=row.store_id, window_start=start, window_end=end))
        hour.invoices += 1
        hour.amount_cents += row.total_amount_cents
        hour.average_cents = hour.amount_cents / hour.invoices
    return sales


def _hour(row: Invoice) -> tuple[Timestamp, Timestamp]:
    start_s = row.created_at.seconds // HOUR_S * HOUR_S
    return Timestamp(seconds=start_s), Timestamp(seconds=start_s + HOUR_S)


def home_delivery(invoices: Iterable[Invoice]) -> Plain:
    """Returns one value for each invoice with goods that the store sends."""
    return plain(
        HomeDelivery(
            invoice_number=row.invoice_number,
            store_id=row.store_id,
            address=row.delivery_address,
            created_at=row.created_at,
        )
        for row in each_once(invoices)
        if row.delivery_type == DeliveryType.DELIVERY_TYPE_HOME_DELIVERY
    )


def loyalty_notifications(invoices: Iterable[Invoice]) -> Plain:
    """Returns one value for each invoice of a PRIME customer, without the customer's total points.

    The total depends on the order in which the stores' partitions were read (stream-processor's tests hold it).
    """
    return plain(
        LoyaltyNotification(
            invoice_number=row.invoice_number,
            customer_card_no=row.customer_card_no,
            total_amount_cents=row.total_amount_cents,
            earned_points=points(row),
        )
        for row in each_once(invoices)
        if row.customer_type == CustomerType.CUSTOMER_TYPE_PRIME
    )


def masked_lines(invoices: Iterable[Invoice]) -> Plain:
    """Returns one value for each line."""
    return plain(_masked(row, line) for row in each_once(invoices) for line in row.lines)


def _masked(row: Invoice, line: InvoiceLine) -> MaskedLine:
    card = row.customer_card_no
    hidden = max(0, len(card) - DIGITS_SHOWN)
    return MaskedLine(
        invoice_number=row.invoice_number,
        store_id=row.store_id,
        created_at=row.created_at,
        customer_type=row.customer_type,
        delivery_type=row.delivery_type,
        city=row.delivery_address.city,
        item_code=line.item_code,
        item_quantity=line.item_quantity,
        item_price_cents=line.item_price_cents,
        customer_card_masked="*" * hidden + card[hidden:],
    )


@dataclass(frozen=True)
class Model:
    """The results that a pipeline must have.

    `sources` are the topics that it reads, with the message of their records; `expected` takes the records of all of
    them, with repetitions and in any order. It returns a Keyed or a Plain; of `invoices-with-store`, lists of messages
    of which any may stand under the key. `running` is the field of a Plain's messages that it cannot tell.
    """

    domain: str
    sources: Mapping[str, type[Message]]
    expected: Callable[..., Any]
    running: tuple[type[Message], str] | None = None


MODELS = {
    "orders-by-key": Model("orders", ORDERS, orders_by_key),
    "orders-by-customer": Model("orders", ORDERS, orders_by_customer),
    "orders-by-item": Model("orders", ORDERS, orders_by_item),
    "bookings-by-customer": Model("bookings", {"bookings": BookingChange}, bookings_by_customer),
    "positions-by-key": Model("positions", {"open-positions": OpenPositionChange}, positions_by_key),
    "us-share-holders": Model("positions", {"open-positions": OpenPositionChange}, us_share_holders),
    "odds-by-match": Model("odds", {"markets": MarketChange}, odds_by_match),
    "matches-about-to-start": Model("odds", {"matches": MatchChange}, matches_about_to_start),
    "matches-by-sport-and-status": Model("odds", {"matches": MatchChange}, matches_by_sport_and_status),
    "stores-by-key": Model("invoices", SHOPS, stores_by_key),
    "invoices-by-store": Model("invoices", INVOICES, invoices_by_store),
    "rewards-by-customer": Model("invoices", INVOICES, rewards_by_customer),
    "hourly-sales-by-store": Model("invoices", INVOICES, hourly_sales_by_store),
    "invoices-with-store": Model("invoices", {**INVOICES, **SHOPS}, invoices_with_store),
    "sales-by-city": Model("invoices", {**INVOICES, **SHOPS}, sales_by_city),
    "sales-by-store": Model("invoices", INVOICES, sales_by_store),
    "stores-with-sales": Model("invoices", {**INVOICES, **SHOPS}, stores_with_sales),
    "home-delivery": Model("invoices", INVOICES, home_delivery),
    "loyalty-notifications": Model(
        "invoices", INVOICES, loyalty_notifications, running=(LoyaltyNotification, "total_points")
    ),
    "masked-lines": Model("invoices", INVOICES, masked_lines),
}
