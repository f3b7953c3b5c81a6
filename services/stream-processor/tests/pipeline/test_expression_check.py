"""The SQL expressions of a file, each in its place."""

import pytest

from statecast_domains.errors import PipelineFileError
from testkit.stream_processor.changes import POSITION_CHANGES
from testkit.stream_processor.micro_batches import PipelineOf


@pytest.mark.parametrize(
    ("name", "replaced", "problem"),
    [
        ("orders-by-key", {"where": "curency = 'EUR'"}, "where: no field 'curency' .* did you mean currency?"),
        ("orders-by-key", {"where": "currency"}, "where: currency is of type string; a condition is true or false"),
        ("orders-by-key", {"where": "status = 'PLACED'"}, "where: .* did you mean ORDER_STATUS_PLACED?"),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "max(ticker)"}}, "insert_only": True, "source": POSITION_CHANGES},
            "max is of type string",
        ),
    ],
)
def test_an_expression_that_does_not_fit_its_place_is_told(
    shipped: PipelineOf, name: str, replaced: dict[str, object], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"{name}.yaml: .*{problem}"):
        shipped(name, **replaced)


@pytest.mark.parametrize(
    ("field", "sql", "problem"),
    [
        ("share", "count(*)", "keep.aggregate.share: .* did you mean shares"),
        ("shares", "sm(amount)", "keep.aggregate.shares: .* did you mean sum"),
        ("shares", "count(amount)", "count counts rows"),
        ("shares", "sum(*)", r"'sum\(\*\)' needs an expression"),
        ("shares", "amount", "is not of the form"),
        ("shares", "sum(amount) + sum(amount)", "is not a SQL expression"),
        ("shares", "sum(amont)", "did you mean amount?"),
        ("shares", "sum(ticker)", "only integers and decimals are summed"),
        ("shares", "sum(amount / 3)", "only integers and decimals are summed"),
        ("shares", "avg(amount)", "avg is a double; the field shares is"),
        ("shares", "min(amount)", "min cannot be taken back .* insert_only"),
        ("shares", "collect_set(amount)", "a set goes into a repeated string"),
        ("position_ids", "collect_set(amount)", "the set's values are of type integer"),
        ("position_ids", "collect_set(ticker, 0)", "a set has 1 to 10,000"),
        ("client", "count(*)", "client is filled with the group"),
    ],
)
def test_an_aggregate_that_does_not_fit_its_field_is_told(
    shipped: PipelineOf, field: str, sql: str, problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"us-share-holders.yaml: .*{problem}"):
        shipped("us-share-holders", keep={"aggregate": {field: sql}})


@pytest.mark.parametrize(
    ("name", "field", "sql", "problem"),
    [
        ("invoices-with-store", "invoices", "row", "select.invoices: .* did you mean invoice?"),
        ("invoices-with-store", "invoice", "store", "select.invoice: is of type .*Store; the field invoice"),
        ("invoices-with-store", "store", "stores", "select.store: .* did you mean store?"),
        ("invoices-with-store", "invoice", "named_struct('a', 1)", "select.invoice: nothing tells"),
        ("home-delivery", "store_id", "created_at", "select.store_id: is of type timestamp"),
        ("masked-lines", "customer_type", "'PRIME'", "select.customer_type: .* did you mean CUSTOMER_TYPE_PR"),
        ("masked-lines", "customer_type", "upper('x')", "select.customer_type: is of type string"),
        ("masked-lines", "item_code", "element.code", "select.item_code: .* did you mean item_code?"),
        ("masked-lines", "item_code", "lines.item_code", "select.item_code: is of type repeated string"),
    ],
)
def test_a_selection_that_does_not_fit_its_field_is_told(
    shipped: PipelineOf, name: str, field: str, sql: str, problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"{name}.yaml: .*{problem}"):
        shipped(name, select={field: sql})
