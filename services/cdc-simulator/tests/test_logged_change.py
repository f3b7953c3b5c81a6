"""One change of the log."""

import pytest

from cdc_simulator.domains.bookings.row import BookingRow
from cdc_simulator.domains.bookings.table import BOOKINGS
from cdc_simulator.domains.orders.row import OrderRow
from cdc_simulator.domains.orders.table import ORDERS
from cdc_simulator.logged_change import LoggedChange


def test_it_knows_what_happened(row: OrderRow) -> None:
    shapes = [(True, None, row), (False, None, row), (False, row, row), (False, row, None)]
    operations = [LoggedChange(ORDERS, 1, "tx-1", 0, snapshot, old, new).operation for snapshot, old, new in shapes]

    assert operations == ["snapshot", "create", "update", "delete"]


def test_it_knows_its_row_also_when_the_row_is_gone(row: OrderRow) -> None:
    assert LoggedChange(ORDERS, 1, "tx-1", 0, False, row, None).row_id == "order-000042"


def test_a_change_without_a_row_is_damage() -> None:
    with pytest.raises(ValueError, match="change 7 has no row"):
        _ = LoggedChange(ORDERS, 7, "tx-1", 0, False, None, None).row_id


def test_its_key_is_that_of_the_new_row_or_of_the_row_that_is_gone() -> None:
    old = BookingRow(1, "customer-0001", 5, "Köln Hbf", "Wien Hbf", 6)
    new = old._replace(customer_id="customer-0002")
    keys = [
        LoggedChange(BOOKINGS, 1, "tx-1", 0, False, before, after).key
        for before, after in ((None, old), (old, new), (new, None))
    ]

    assert keys == ["customer-0001", "customer-0002", "customer-0002"]
