"""The model of each pipeline, by the pipeline's name: the topics that it reads, and what it must leave on its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from drivers import model_bookings, model_invoices, model_odds, model_orders, model_positions, model_routes
from statecast.bookings.v1.booking_pb2 import BookingChange
from statecast.odds.v1.market_pb2 import MarketChange
from statecast.odds.v1.match_pb2 import MatchChange
from statecast.orders.v1.order_pb2 import OrderChange
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange
from statecast.sales.v1.invoice_pb2 import InvoiceChange
from statecast.sales.v1.store_pb2 import StoreChange

ORDERS: Mapping[str, type[Message]] = {"orders": OrderChange}
INVOICES: Mapping[str, type[Message]] = {"invoices": InvoiceChange}
STORES: Mapping[str, type[Message]] = {"stores": StoreChange}


@dataclass(frozen=True)
class Model:
    """What a pipeline must do.

    `sources` are the topics that it reads, with the message of their changes; `expected` takes the changes of all of
    them, with repetitions and in any order. It returns a Keyed or a Plain; of `invoices-with-store`, lists of messages
    of which any may stand under the key.
    """

    domain: str
    sources: Mapping[str, type[Message]]
    expected: Callable[..., Any]


MODELS = {
    "orders-by-key": Model("orders", ORDERS, model_orders.orders_by_key),
    "orders-by-customer": Model("orders", ORDERS, model_orders.orders_by_customer),
    "orders-by-item": Model("orders", ORDERS, model_orders.orders_by_item),
    "bookings-by-customer": Model("bookings", {"bookings": BookingChange}, model_bookings.bookings_by_customer),
    "us-share-holders": Model("positions", {"open-positions": OpenPositionChange}, model_positions.us_share_holders),
    "odds-by-match": Model("odds", {"markets": MarketChange}, model_odds.odds_by_match),
    "matches-about-to-start": Model("odds", {"matches": MatchChange}, model_odds.matches_about_to_start),
    "stores-by-key": Model("invoices", STORES, model_invoices.stores_by_key),
    "rewards-by-customer": Model("invoices", INVOICES, model_invoices.rewards_by_customer),
    "hourly-sales-by-store": Model("invoices", INVOICES, model_invoices.hourly_sales_by_store),
    "invoices-with-store": Model("invoices", {**INVOICES, **STORES}, model_invoices.invoices_with_store),
    "home-delivery": Model("invoices", INVOICES, model_routes.home_delivery),
    "loyalty-notifications": Model("invoices", INVOICES, model_routes.loyalty_notifications),
    "masked-lines": Model("invoices", INVOICES, model_routes.masked_lines),
}
