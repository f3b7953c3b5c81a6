"""The table of orders in PostgreSQL, as a person or another program changes and reads it."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.orders.v1.order_pb2 import Order, OrderItem, OrderStatus
from testkit.postgres import execute

INSERT = """
INSERT INTO orders (number, order_id, customer_id, status, items, total_cents, currency, placed_at, updated_at,
                    estimated_delivery, tracking_number)
VALUES (%s, %s, %s, 'placed', '[{"item_id": "item-a", "quantity": 1, "unit_price_cents": 250}]', 250, 'EUR',
        now(), now(), '', '')"""
COLUMNS = (
    "order_id, customer_id, status, items, total_cents, currency, placed_at, updated_at, estimated_delivery, "
    "tracking_number"
)


@dataclass(frozen=True)
class OrderTable:
    """The table in the database at `url`; each statement is a transaction."""

    url: str

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Runs the statement on a connection of its own, and returns the rows that it selects, if it does."""
        return execute(self.url, statement, parameters)

    def place(self, number: int, customer_id: str) -> str:
        """Inserts an order of one item and returns its id; a number below 0 is none of the simulator's."""
        order_id = f"test{number}"
        self.execute(INSERT, number, order_id, customer_id)
        return order_id

    def orders(self) -> list[Order]:
        """Returns all rows as they are now."""
        return [_order(*row) for row in self.execute(f"SELECT {COLUMNS} FROM orders")]

    def changes_made(self) -> int:
        """Returns how many changes the simulator has committed."""
        ((changes,),) = self.execute("SELECT log_sequence_number - snapshot_lsn FROM cdc_simulator.state")
        return int(changes)


def _order(order_id: str, customer_id: str, status: str, items: list[dict[str, Any]], *others: Any) -> Order:
    total_cents, currency, placed_at, updated_at, estimated_delivery, tracking_number = others
    placed, updated = Timestamp(), Timestamp()
    placed.FromDatetime(placed_at)
    updated.FromDatetime(updated_at)
    return Order(
        order_id=order_id,
        customer_id=customer_id,
        status=OrderStatus.Value(f"ORDER_STATUS_{status.upper()}"),
        items=[OrderItem(**item) for item in items],
        total_cents=total_cents,
        currency=currency,
        placed_at=placed,
        updated_at=updated,
        estimated_delivery=estimated_delivery,
        tracking_number=tracking_number,
    )
