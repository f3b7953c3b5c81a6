"""The SQL expressions of a file, each in its place."""

from collections.abc import Callable

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.changes import POSITION_CHANGES


@pytest.mark.parametrize(
    ("name", "replaced", "problem"),
    [
        ("orders-by-key", {"where": "curency = 'EUR'"}, "where: no field 'curency' .* did you mean currency?"),
        ("orders-by-key", {"where": "currency"}, "where: currency is of type string; a condition is true or false"),
        ("orders-by-key", {"where": "status = 'PLACED'"}, "where: .* did you mean ORDER_STATUS_PLACED?"),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"share": "count(*)"}}},
            "keep.aggregate.share: .* did you mean shares",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "sm(amount)"}}},
            "keep.aggregate.shares: .* did you mean sum",
        ),
        ("us-share-holders", {"keep": {"aggregate": {"shares": "count(amount)"}}}, "count counts rows"),
        ("us-share-holders", {"keep": {"aggregate": {"shares": "sum(*)"}}}, r"'sum\(\*\)' needs an expression"),
        ("us-share-holders", {"keep": {"aggregate": {"shares": "amount"}}}, "is not of the form"),
        ("us-share-holders", {"keep": {"aggregate": {"shares": "sum(amount) + sum(amount)"}}}, "is no SQL expression"),
        ("us-share-holders", {"keep": {"aggregate": {"shares": "sum(amont)"}}}, "did you mean amount?"),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "sum(ticker)"}}},
            "only integers and decimals are summed",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "sum(amount / 3)"}}},
            "only integers and decimals are summed",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "avg(amount)"}}},
            "avg is a double; the field shares is",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"position_ids": "collect_set(amount)"}}},
            "the set's values are of type integer",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "collect_set(amount)"}}},
            "a set goes into a repeated string",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"position_ids": "collect_set(ticker, 0)"}}},
            "a set has 1 to 10,000",
        ),
        ("us-share-holders", {"keep": {"aggregate": {"client": "count(*)"}}}, "client is filled with the group"),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "min(amount)"}}},
            "min cannot be taken back .* insert_only",
        ),
        (
            "us-share-holders",
            {"keep": {"aggregate": {"shares": "max(ticker)"}}, "insert_only": True, "source": POSITION_CHANGES},
            "max is of type string",
        ),
        ("invoices-with-store", {"select": {"invoices": "row"}}, "select.invoices: .* did you mean invoice?"),
        (
            "invoices-with-store",
            {"select": {"invoice": "store"}},
            "select.invoice: is of type .*Store; the field invoice",
        ),
        ("invoices-with-store", {"select": {"store": "stores"}}, "select.store: .* did you mean store?"),
        ("invoices-with-store", {"select": {"invoice": "named_struct('a', 1)"}}, "select.invoice: nothing tells"),
        ("home-delivery", {"select": {"store_id": "created_at"}}, "select.store_id: is of type timestamp"),
        (
            "masked-lines",
            {"select": {"customer_type": "'PRIME'"}},
            "select.customer_type: .* did you mean CUSTOMER_TYPE_PR",
        ),
        ("masked-lines", {"select": {"customer_type": "upper('x')"}}, "select.customer_type: is of type string"),
        ("masked-lines", {"select": {"item_code": "element.code"}}, "select.item_code: .* did you mean item_code?"),
        ("masked-lines", {"select": {"item_code": "lines.item_code"}}, "select.item_code: is of type repeated string"),
    ],
)
def test_an_expression_that_does_not_fit_its_place_is_told(
    shipped: Callable[..., Pipeline], name: str, replaced: dict[str, object], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"{name}.yaml: .*{problem}"):
        shipped(name, **replaced)
