"""Rows as columns and images."""

import json

from cdc_simulator.domains.invoices import INVOICES, CustomerType, InvoiceRow, Line
from cdc_simulator.domains.orders import ORDERS, OrderRow, Status
from cdc_simulator.schema import TableColumns

COLUMNS = TableColumns(ORDERS)


def test_a_row_comes_back_from_its_columns(row: OrderRow) -> None:
    again = COLUMNS.row_of_columns(COLUMNS.insert_values(row))

    assert again == row
    assert again.status is Status.PAID


def test_a_row_comes_back_from_its_image(row: OrderRow) -> None:
    assert COLUMNS.row_of_image(json.dumps(row)) == row
    assert COLUMNS.row_of_image(None) is None


def test_an_update_sets_every_column_but_the_primary_key(row: OrderRow) -> None:
    assert COLUMNS.update.startswith("UPDATE orders SET customer_id = ?, status = ?, ")
    assert COLUMNS.update.endswith(", tracking_number = ? WHERE number = ?")
    assert COLUMNS.update_values(row) == (*COLUMNS.insert_values(row)[1:], row.number)


def test_an_absent_value_of_a_json_column_stays_absent() -> None:
    columns = TableColumns(INVOICES)
    row = InvoiceRow(1, "store-01", "4000", CustomerType.PRIME, None, (Line("a", "b", 1, 2),), 2, "INR", 3)

    assert columns.insert_values(row)[4] is None
    assert columns.row_of_columns(columns.insert_values(row)) == row
    assert columns.row_of_image(json.dumps(row)) == row
