"""Stores and invoices as the contract has them."""

from cdc_simulator.domains.invoices.rows import Address, CustomerType, InvoiceRow, Line, StoreRow
from cdc_simulator.domains.invoices.tables import CUSTOMER_TYPES, INVOICES, STORES, invoice, store
from cdc_simulator.table_columns import TableColumns
from statecast.sales.v1.invoice_pb2 import CustomerType as ContractType
from statecast.sales.v1.invoice_pb2 import DeliveryAddress, DeliveryType, InvoiceLine
from statecast.sales.v1.store_pb2 import Store

ADDRESS = Address("7 Station Road", "Pune", "411001", "9000000001")
LINES = (Line("item-0001", "Article 1", 2, 500), Line("item-0002", "Article 2", 1, 99))
ROW = InvoiceRow(42, "store-03", "4000000000000007", CustomerType.PRIME, ADDRESS, LINES, 1099, "INR", 1_000_001)
STORE = StoreRow(3, "Pune Plaza", "Pune")


def test_every_field_of_an_invoice_is_carried_over() -> None:
    message = invoice(ROW)

    assert (message.invoice_number, message.store_id) == ("invoice-000042", "store-03")
    assert (message.customer_card_no, message.customer_type) == ("4000000000000007", ContractType.CUSTOMER_TYPE_PRIME)
    assert message.delivery_type == DeliveryType.DELIVERY_TYPE_HOME_DELIVERY
    assert message.delivery_address == DeliveryAddress(
        address_line="7 Station Road", city="Pune", postal_code="411001", contact_number="9000000001"
    )
    assert message.lines[1] == InvoiceLine(
        item_code="item-0002", item_description="Article 2", item_quantity=1, item_price_cents=99
    )
    assert (len(message.lines), message.total_amount_cents, message.currency) == (2, 1099, "INR")
    assert message.created_at.ToMicroseconds() == 1_000_001


def test_what_is_taken_away_has_no_address() -> None:
    message = invoice(ROW._replace(delivery_address=None))

    assert message.delivery_type == DeliveryType.DELIVERY_TYPE_TAKE_AWAY
    assert not message.HasField("delivery_address")


def test_every_field_of_a_store_is_carried_over() -> None:
    assert store(STORE) == Store(store_id="store-03", name="Pune Plaza", city="Pune")


def test_both_have_the_store_as_the_key_of_their_changes() -> None:
    assert (STORES.key(STORE), INVOICES.key(ROW)) == ("store-03", "store-03")


def test_rows_come_back_from_their_columns() -> None:
    for table, row in ((STORES, STORE), (INVOICES, ROW), (INVOICES, ROW._replace(delivery_address=None))):
        columns = TableColumns(table)

        assert columns.row_of_columns(columns.insert_values(row)) == row


def test_every_customer_type_of_the_contract_is_known() -> None:
    assert set(CUSTOMER_TYPES.values()) == set(ContractType.values()) - {ContractType.CUSTOMER_TYPE_UNSPECIFIED}
