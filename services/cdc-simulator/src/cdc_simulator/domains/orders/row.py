"""A row of the table `orders`."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """The station of an order in its life; the values stand in the table."""

    PLACED = "placed"
    PAID = "paid"
    PACKED = "packed"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


class Item(NamedTuple):
    """One line of an order."""

    item_id: str
    quantity: int
    unit_price_cents: int


class OrderRow(NamedTuple):
    """One row. Times are microseconds since 1970 UTC; texts are empty while unknown; `number` is the primary key."""

    number: int
    customer_id: str
    status: Status
    items: tuple[Item, ...]
    total_cents: int
    currency: str
    placed_at_us: int
    updated_at_us: int
    estimated_delivery: str
    tracking_number: str

    @property
    def order_id(self) -> str:
        """The order's id as the rest of the world knows it, for example `order-000042`."""
        return f"order-{self.number:06d}"
