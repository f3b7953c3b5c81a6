"""Rows as columns and images."""

import json

from cdc_simulator.order_row import OrderRow, Status
from cdc_simulator.row_columns import insert_values, row_of_columns, row_of_image, update_values


def test_a_row_comes_back_from_its_columns(row: OrderRow) -> None:
    again = row_of_columns(insert_values(row))

    assert again == row
    assert again.status is Status.PAID


def test_a_row_comes_back_from_its_image(row: OrderRow) -> None:
    assert row_of_image(json.dumps(row)) == row
    assert row_of_image(None) is None


def test_an_update_names_neither_customer_nor_time_of_placing(row: OrderRow) -> None:
    values = update_values(row)

    assert row.customer_id not in values
    assert row.placed_at_us not in values
    assert values[-1] == row.number
