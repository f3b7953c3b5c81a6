"""Texts that are decimals: the contract's option, and expressions on them without Spark."""

from pathlib import Path

import pytest

from statecast.descriptors import MessageTypes
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.errors import ConfigurationError, ContractError
from stream_processor.pipeline.decimals import Decimal, decimal_of
from stream_processor.pipeline.fields import Contract, Scope, scope_of
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.pipeline.sql_expression import type_of
from testkit.stream_processor import sales
from testkit.stream_processor.micro_batches import PipelineOf


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    """The installed contract with the messages of the sales."""
    return Contract(MessageTypes.read(sales.mount(tmp_path_factory.mktemp("messages"))).descriptor_set)


@pytest.fixture
def scope(contract: Contract) -> Scope:
    return scope_of(contract.message(sales.ROW), {})


@pytest.fixture
def check(contract: Contract) -> PipelineOf:
    """Checks an aggregate of the sales' shops, with keys of its file replaced."""

    def checked(**replaced: object) -> Pipeline:
        content = {
            "name": "turnover",
            "source": {"topic": "sales", "message": sales.CHANGE, "key": "sale_id"},
            "group_by": "shop",
            "keep": {"aggregate": {"sales": "count(*)"}},
            "sink": {"topic": "turnover", "message": sales.TURNOVER},
        }
        return shapes.check("t.yaml", PipelineFile.model_validate({**content, **replaced}), contract)

    return checked


def test_the_option_makes_a_decimal_of_a_text(contract: Contract) -> None:
    sale = contract.message(sales.ROW)
    price, discounts = contract.path(sale, "price"), contract.path(sale, "discounts")

    assert (price.kind, price.decimal, price.repeated) == ("decimal", Decimal(12, 2), False)
    assert (discounts.kind, discounts.decimal, discounts.repeated) == ("decimal", Decimal(2, 2), True)
    assert (contract.path(sale, "shop").kind, decimal_of(sale.fields_by_name["shop"])) == ("string", None)


@pytest.mark.parametrize(
    ("decimal", "width"), [(Decimal(12, 2), 13), (Decimal(2, 2), 4), (Decimal(5, 0), 5), (Decimal(38, 38), 40)]
)
def test_the_longest_text_has_a_digit_before_the_point(decimal: Decimal, width: int) -> None:
    assert decimal.width == width


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("int64 price = 1 [(statecast.change.v1.decimal) = {precision: 12}]", "goes with a field of type string"),
        ("bytes price = 1 [(statecast.change.v1.decimal) = {precision: 12}]", "goes with a field of type string"),
        ("string price = 1 [(statecast.change.v1.decimal) = {precision: 39}]", "has the precision 39; .* from 1 to 38"),
        ("string price = 1 [(statecast.change.v1.decimal) = {scale: 2}]", "has the precision 0; .* from 1 to 38"),
        ("string price = 1 [(statecast.change.v1.decimal) = {precision: 3, scale: 4}]", "has the scale 4; .* 3"),
        ("string price = 1 [(statecast.change.v1.decimal) = {precision: 3, scale: -1}]", "has the scale -1; .* 3"),
    ],
)
def test_an_option_of_no_use_is_refused_with_the_name_of_its_field(tmp_path: Path, field: str, problem: str) -> None:
    text = f"""
    syntax = "proto3"; package shop.v1; import "statecast/change/v1/decimal.proto";
    message Sale {{ message Line {{ {field}; }} }}
    """
    (tmp_path / "sales.proto").write_text(text)

    with pytest.raises(ConfigurationError, match=rf"shop\.v1\.Sale\.Line\.price: \(statecast.*decimal\) {problem}"):
        Contract(MessageTypes.read(tmp_path).descriptor_set)


@pytest.mark.parametrize(
    ("sql", "type_name"),
    [
        ("price", "decimal"),
        ("discounts", "repeated decimal"),
        ("discounts[0]", "decimal"),
        ("price * amount", "decimal"),
        ("price * 1.19", "decimal"),
        ("price - 1", "decimal"),
        ("-price % 3", "decimal"),
        ("price / 3", "decimal"),
        ("amount * 0.5", "decimal"),
        ("price * weight", "float"),
        ("price * 1.5e3", "float"),
        ("price div 2", "integer"),
        ("abs(price)", "decimal"),
        ("if(price > 10.5, price, 0.5)", "decimal"),
        ("cast(shop as decimal(10, 2))", "decimal"),
        ("price between 1 and 2.5 and price in (1, 2) and price <> weight", "bool"),
        ("coalesce(price, 0)", "None"),
        ("try_divide(price, amount)", "None"),
        ("exists(discounts, discount -> discount > 0.1)", "bool"),
    ],
)
def test_expressions_take_it_as_a_number(scope: Scope, sql: str, type_name: str) -> None:
    assert str(type_of(sql, scope)) == type_name


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("price > '10.5'", "compares decimal with string"),
        ("price + shop", "shop is of type string; only numbers"),
        ("price and true", "price is of type decimal; a condition is true or false"),
    ],
)
def test_what_is_no_number_does_not_go_with_it(scope: Scope, sql: str, problem: str) -> None:
    with pytest.raises(ContractError, match=problem):
        type_of(sql, scope)


def test_aggregates_group_and_sum_decimals(check: PipelineOf) -> None:
    sums = {"total": "sum(price * amount)", "average": "avg(price)", "sales": "sum(amount)"}

    check(keep={"aggregate": sums})
    check(keep={"aggregate": {"total": "sum(amount)"}})
    check(keep={"aggregate": {"price": "max(price)", "average": "min(price)"}}, insert_only=True)
    check(group_by="price")


def test_decimals_are_keys_and_sort_members(check: PipelineOf) -> None:
    keep = {"members": {"key": "sale_id", "sort": "price"}}

    key = ["sale_id", "price"]

    check(keep=keep, group_by="price", sink={"topic": "t"})
    check(
        keep="latest",
        group_by=key,
        sink={"topic": "t"},
        source={"topic": "sales", "message": sales.CHANGE, "key": key},
    )


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        (
            {"keep": {"aggregate": {"sales": "sum(price)"}}},
            "sum is of type decimal; the field sales is of type integer",
        ),
        ({"keep": {"aggregate": {"total": "sum(weight)"}}}, "only integers and decimals are summed exactly"),
        (
            {"keep": {"aggregate": {"shop": "sum(price)"}}, "group_by": "price"},
            "sum is an int64 or a decimal; .* string",
        ),
        ({"keep": {"aggregate": {"total": "avg(price)"}}}, "avg is a double; the field total is of type decimal"),
        ({"keep": {"aggregate": {"total": "count(*)"}}}, "count is an int64; the field total is of type decimal"),
        ({"keep": {"aggregate": {"total": "min(weight)"}}, "insert_only": True}, "min is of type float"),
        ({"keep": {"aggregate": {"sales": "min(price)"}}, "insert_only": True}, "min is of type decimal"),
        ({"group_by": "tax"}, r"tax does not fit the field shop\.v1\.Turnover\.tax"),
    ],
)
def test_what_does_not_fit_a_decimal_is_refused(check: PipelineOf, replaced: dict[str, object], problem: str) -> None:
    with pytest.raises(PipelineFileError, match=problem):
        check(**replaced)
