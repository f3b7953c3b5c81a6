"""Stores and invoices: their life cycles and their messages."""

from random import Random

from cdc_simulator.domain import DatabaseParameters, StepContext
from cdc_simulator.domains.invoices import (
    INVOICE_LIFE_CYCLE,
    INVOICES,
    MAX_LINES,
    STORE_COUNT,
    STORES,
    Address,
    CustomerType,
    InvoiceRow,
    Line,
    StoreRow,
    create_invoice,
    create_store,
    rename_store,
)
from statecast.sales.v1.invoice_pb2 import CustomerType as ContractType
from statecast.sales.v1.invoice_pb2 import DeliveryAddress, DeliveryType, Invoice, InvoiceLine
from statecast.sales.v1.store_pb2 import Store

NOW_US = 1_724_848_496_123_456
ADDRESS = Address("7 Station Road", "Pune", "411001", "9000000001")
LINES = (Line("item-0001", "Article 1", 2, 500), Line("item-0002", "Article 2", 1, 99))
ROW = InvoiceRow(42, "store-03", "4000000000000007", CustomerType.PRIME, ADDRESS, LINES, 1099, "INR", 1_000_001)
STORE = StoreRow(3, "Pune Plaza", "Pune")


def test_stores_differ_in_name_and_id() -> None:
    stores = [create_store(number) for number in range(1, STORE_COUNT + 1)]

    assert len({store.name for store in stores}) == STORE_COUNT
    assert [store.store_id for store in stores][:2] == ["store-01", "store-02"]


def test_a_store_gets_another_name_and_stays_where_it_is() -> None:
    store = create_store(3)
    renamed = [rename_store(store, Random(seed)) for seed in range(50)]

    assert store not in renamed
    assert {(each.number, each.city) for each in renamed} == {(3, store.city)}


def steps(parameters: DatabaseParameters) -> list[tuple[InvoiceRow, InvoiceRow | None]]:
    contexts = [StepContext(Random(seed), parameters, NOW_US) for seed in range(400)]
    return [
        (row, INVOICE_LIFE_CYCLE.advance(row, context)) for context in contexts for row in [create_invoice(42, context)]
    ]


def test_the_total_of_an_invoice_is_the_sum_of_its_lines(parameters: DatabaseParameters) -> None:
    for row, _ in steps(parameters):
        assert 1 <= len(row.lines) <= MAX_LINES
        assert len({line.item_code for line in row.lines}) == len(row.lines)
        assert row.total_amount_cents == sum(line.item_quantity * line.item_price_cents for line in row.lines)


def test_a_terminal_corrects_no_invoice_and_forgets_it_in_the_end(parameters: DatabaseParameters) -> None:
    assert {after for _, after in steps(parameters)} == {None}


def test_all_stores_sell_to_take_away_and_to_send(parameters: DatabaseParameters) -> None:
    rows = [before for before, _ in steps(parameters)]

    assert {(row.store_id, row.delivery_address is None) for row in rows} == {
        (f"store-{number:02d}", taken) for number in range(1, STORE_COUNT + 1) for taken in (True, False)
    }


def test_cards_have_sixteen_digits(parameters: DatabaseParameters) -> None:
    assert {len(row.customer_card_no) for row, _ in steps(parameters)} == {16}


def test_every_field_of_an_invoice_is_carried_over() -> None:
    message = INVOICES.message(ROW)

    assert isinstance(message, Invoice)
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
    message = INVOICES.message(ROW._replace(delivery_address=None))

    assert isinstance(message, Invoice)
    assert message.delivery_type == DeliveryType.DELIVERY_TYPE_TAKE_AWAY
    assert not message.HasField("delivery_address")


def test_every_field_of_a_store_is_carried_over() -> None:
    assert STORES.message(STORE) == Store(store_id="store-03", name="Pune Plaza", city="Pune")


def test_stores_and_invoices_have_the_store_as_the_key_of_their_records() -> None:
    assert (STORES.key(STORE), INVOICES.key(ROW)) == ("store-03", "store-03")


def test_every_customer_type_of_the_contract_is_known() -> None:
    known = {f"CUSTOMER_TYPE_{each.name}" for each in CustomerType}

    assert known == set(ContractType.keys()) - {"CUSTOMER_TYPE_UNSPECIFIED"}
