"""Rows on disk and as images."""

import json
import sqlite3
from contextlib import closing

import pytest

from cdc_simulator.domains.invoices import INVOICES, STORES, Address, CustomerType, InvoiceRow, Line, StoreRow
from cdc_simulator.domains.odds import MARKETS, MATCHES, MarketRow, MatchRow, Outcome
from cdc_simulator.domains.odds import Status as MatchStatus
from cdc_simulator.domains.orders import ORDERS, OrderRow, Status
from cdc_simulator.source_table import Row, SourceTable

SENT = InvoiceRow(
    1, "store-01", "4000", CustomerType.PRIME, Address("7 Road", "Pune", "1", "9"), (Line("a", "b", 1, 2),), 2, "INR", 3
)


def stored(table: SourceTable[Row], row: Row) -> Row:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(table.definition())
        connection.execute(table.insert, table.insert_values(row))
        ((image,),) = connection.execute(table.select, (row.number,))
        return table.row_of(image)


def test_a_row_comes_back_from_its_columns(row: OrderRow) -> None:
    again = stored(ORDERS, row)

    assert again == row
    assert again.status is Status.PAID


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (STORES, StoreRow(3, "Pune Plaza", "Pune")),
        (INVOICES, SENT),
        (INVOICES, SENT._replace(delivery_address=None)),
        (MATCHES, MatchRow(42, "football", "Cork", "Lund", MatchStatus.ABOUT_TO_START, 1_000_001)),
        (MARKETS, MarketRow(42 * 8 + 3, "goals", (Outcome("over", 1900), Outcome("under", 2100)), True, 2_000_002)),
    ],
)
def test_rows_of_all_kinds_come_back_from_their_columns_and_images(table: SourceTable[Row], row: Row) -> None:
    assert repr(stored(table, row)) == repr(table.row_of(json.dumps(row))) == repr(row)


def test_a_row_comes_back_from_its_image(row: OrderRow) -> None:
    assert ORDERS.row_of(json.dumps(row)) == row
    assert ORDERS.row_of(None) is None


def test_an_update_sets_every_column_but_the_primary_key(row: OrderRow) -> None:
    assert ORDERS.update.startswith("UPDATE orders SET customer_id = ?, status = ?, ")
    assert ORDERS.update.endswith(", tracking_number = ? WHERE number = ?")
    assert ORDERS.update_values(row) == (*ORDERS.insert_values(row)[1:], row.number)


def test_an_absent_value_of_a_json_column_is_null() -> None:
    assert INVOICES.insert_values(SENT._replace(delivery_address=None))[4] is None
