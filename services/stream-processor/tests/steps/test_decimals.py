"""Texts that are decimals in a pipeline's steps: numbers to SQL, and again texts, with all of their digits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from statecast.descriptors import MessageTypes
from statecast.state.v1.state_pb2 import StateRecord
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from testkit.stream_processor import sales
from testkit.stream_processor.one_batch import OneBatch

pytestmark = pytest.mark.timeout(600)

Written = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Shop:
    """Pipelines of the sales, and records through them."""

    types: MessageTypes
    contract: Contract
    batch: OneBatch

    def pipeline(self, encoding: str = "protobuf", **content: Any) -> Pipeline:
        """Makes a pipeline; that of the newest row by its id unless keys are given."""
        whole = {
            "name": "sales",
            "source": {"topic": "sales", "message": sales.CHANGE, "format": encoding, "key": "sale_id"},
            "group_by": "sale_id",
            "keep": "latest",
            "sink": {"topic": "kept"},
            **content,
        }
        return shapes.check("sales.yaml", PipelineFile.model_validate(whole), self.contract)

    def change(self, operation: str, **content: object) -> Any:
        """Returns a change of a row."""
        source = {"epoch": 1, "log_sequence_number": 1, "table": "sales"}
        document = {"operation": operation, "source": source, **content}
        return json_format.ParseDict(document, self.types.message_class(sales.CHANGE)())

    def created(self, *rows: Mapping[str, object]) -> list[Message]:
        """Changes that create these rows."""
        numbered = [{"sale_id": number, "shop": "a", **row} for number, row in enumerate(rows, 1)]
        return [self.change("OPERATION_CREATE", after=row) for row in numbered]

    def written(self, pipeline: Pipeline, changes: Sequence[Message | bytes]) -> Written:
        """Returns the records on the topic after the changes, by key."""
        message = self.types.message_class(pipeline.sink.full_name)
        rows = [line for line in self.batch.written(pipeline, *changes) if line.value is not None]
        payloads = {bytes(line.key).decode(): StateRecord.FromString(bytes(line.value)).payload for line in rows}
        return {
            key: json_format.MessageToDict(message.FromString(payload), preserving_proto_field_name=True)
            for key, payload in payloads.items()
        }


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Shop:
    types = MessageTypes.read(sales.mount(tmp_path_factory.mktemp("messages")))
    contract = Contract(types.descriptor_set)
    return Shop(types, contract, OneBatch(spark, Functions(spark, contract)))


def turnover(**numbers: str) -> dict[str, Any]:
    """Returns the sections that make a pipeline an aggregate of each shop's sales."""
    return {
        "group_by": "shop",
        "keep": {"aggregate": numbers},
        "sink": {"topic": "turnover", "message": sales.TURNOVER},
    }


def debezium(**columns: object) -> bytes:
    """Returns the creation of a row in Debezium's JSON."""
    after = {"sale_id": 1, "shop": "a", "amount": 1, **columns}
    return json.dumps({"op": "c", "source": {"lsn": 7}, "before": None, "after": after}).encode()


def test_a_condition_compares_numbers_and_a_row_is_written_as_it_came(shop: Shop) -> None:
    changes = shop.created({"price": "9.5"}, {"price": "10.50"}, {"price": "100"}, {}, {"price": "1.051E1"})

    kept = shop.written(shop.pipeline(where="price > 10.5"), changes)

    assert {key: row["price"] for key, row in kept.items()} == {"3": "100", "5": "1.051E1"}


def test_what_select_makes_of_decimals_has_the_digits_of_its_field(shop: Shop) -> None:
    select = {
        "shop": "shop",
        "total": "price * 1.5 - 1",
        "price": "cast(price / 3 as decimal(12, 2))",
        "average": "price",
        "discounts": "discounts[0]",
        "sales": "price div 2",
    }
    selecting = shop.pipeline(select={**select, "total": "round(price * 1.5 - 1, 2)"}, sink=turnover()["sink"])

    kept = shop.written(selecting, shop.created({"price": "10", "discounts": ["0.5", ".25"]}, {"price": "0"}, {}))

    assert kept["1"] == {
        "shop": "a",
        "total": "14.00",
        "price": "3.33",
        "average": 10.0,
        "discounts": "0.50",
        "sales": "5",
    }
    assert kept["2"] == {"shop": "a", "total": "-1.00", "price": "0.00"}
    assert kept["3"] == {"shop": "a"}


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        ({"price": "price * amount"}, r"select.price: is decimal\(33,2\), the field needs decimal\(12,2\)"),
        ({"total": "price * 1.5"}, r"select.total: is decimal\(15,3\), the field needs decimal\(38,2\)"),
        ({"price": "amount"}, r"select.price: is bigint, the field needs decimal\(12,2\)"),
    ],
)
def test_nothing_is_cut_or_rounded_to_fit(shop: Shop, select: dict[str, str], problem: str) -> None:
    with pytest.raises(PipelineFileError, match=problem):
        shop.written(shop.pipeline(select=select, sink=turnover()["sink"]), shop.created({}))


def test_sums_of_decimals_are_exact(shop: Shop) -> None:
    rows = [{"price": f"{n}.{n % 100:02}", "amount": str(10**14 + n)} for n in range(1, 40)]
    summing = shop.pipeline(**turnover(total="sum(price * amount)", sales="sum(amount)", average="avg(price)"))

    [kept] = shop.written(summing, shop.created(*rows, {"amount": "1"})).values()

    prices = [Decimal(str(row["price"])) for row in rows]
    total = sum(price * int(row["amount"]) for price, row in zip(prices, rows, strict=True))
    assert kept["total"] == str(total)
    assert kept["sales"] == str(sum(int(row["amount"]) for row in rows) + 1)
    assert kept["average"] == pytest.approx(float(sum(prices)) / len(prices))


def test_a_sum_and_an_extreme_of_no_values_are_unset(shop: Shop) -> None:
    numbers = {"total": "sum(price)", "price": "max(price)", "pieces": "sum(amount div price)"}
    summing = shop.pipeline(**turnover(**numbers, sales="sum(amount div price)"), insert_only=True)

    none = shop.written(summing, shop.created({}, {}))
    some = shop.written(summing, shop.created({}, {"price": "-7", "amount": "14"}, {"price": "-7.5"}))

    # A field that cannot be unset is 0.
    assert none == {"a": {"shop": "a"}}
    assert some == {"a": {"shop": "a", "total": "-14.50", "price": "-7.00", "pieces": "-2", "sales": "-2"}}


def test_a_sum_is_unset_when_the_last_value_is_taken_back(shop: Shop) -> None:
    summing = shop.pipeline(**turnover(total="sum(price)", pieces="sum(amount div price)", average="avg(price)"))
    update = shop.change(
        "OPERATION_UPDATE",
        before={"sale_id": 1, "shop": "a", "price": "7", "amount": "14"},
        after={"sale_id": 1, "shop": "a"},
    )
    update.source.log_sequence_number = 2

    kept = shop.written(summing, [*shop.created({"price": "7", "amount": "14"}, {}), update])

    assert kept == {"a": {"shop": "a"}}


@pytest.mark.parametrize(
    ("numbers", "row"),
    [
        ({"price": "sum(price)"}, {"price": "9999999999.99"}),
        ({"price": "max(price * amount)"}, {"price": "9999999999.99", "amount": "2"}),
    ],
)
def test_a_group_with_a_sum_or_an_extreme_beyond_its_field_is_withheld(
    shop: Shop, numbers: dict[str, str], row: dict[str, object]
) -> None:
    summing = shop.pipeline(**turnover(**numbers), insert_only=True)

    assert shop.written(summing, shop.created(row, row, {"shop": "b", "price": "1", "amount": "1"})).keys() == {"b"}


def test_a_row_that_adds_too_many_digits_is_a_problem_and_no_end(shop: Shop) -> None:
    summing = shop.pipeline(**turnover(total="sum(price * amount)"), insert_only=True)
    changes = shop.created({"price": "9999999999.99", "amount": str(2**62)}, {"price": "2", "amount": "3"}, {})

    assert shop.batch.problems(summing, *changes) == ["total: price * amount has more than 28 digits", None, None]
    assert shop.written(summing, changes)["a"]["total"] == "6.00"


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ({"price": "sum(tax)"}, r"keep.aggregate.price: tax is decimal\(8,7\), the field needs decimal\(12,2\)"),
        ({"sales": "sum(round(price, 1))"}, r"round\(price, 1\) is decimal\(12,1\), the field needs bigint"),
        (
            {"price": "max(try_divide(price, 3))"},
            r"is decimal\(.*\), the field needs decimal\(12,2\): round or cast it",
        ),
        ({"price": "max(coalesce(weight, 1D))"}, r"max is of type float|is double, the field needs decimal\(12,2\)"),
    ],
)
def test_an_aggregate_whose_field_has_fewer_decimals_is_refused(
    shop: Shop, numbers: dict[str, str], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=problem):
        shop.written(shop.pipeline(**turnover(**numbers), insert_only=True), shop.created({}))


def test_an_integer_beyond_an_unsigned_field_is_unset(shop: Shop) -> None:
    selecting = shop.pipeline(select={"boxes": "amount"}, sink=turnover()["sink"])

    kept = shop.written(selecting, shop.created({"amount": 2**32 - 1}, {"amount": 2**32 + 7}, {"amount": -1}))

    assert kept == {"1": {"boxes": 2**32 - 1}, "2": {}, "3": {}}


def test_a_group_is_the_plain_digits_of_its_decimal(shop: Shop) -> None:
    by_price = {**turnover(sales="count(*)"), "group_by": "price"}
    by_discount = {**turnover(sales="count(*)", total="sum(price)"), "group_by": "discounts"}

    prices = shop.written(
        shop.pipeline(**by_price), shop.created({"price": "1234567"}, {"price": "1234567.0"}, {"price": "0E-7"}, {})
    )
    discounts = shop.written(
        shop.pipeline(**by_discount), shop.created({"price": "1.25", "discounts": [".5", "0.50", "0"]})
    )
    latest = shop.written(shop.pipeline(group_by="tax", source=BY_TAX), shop.created({"tax": "1E-7"}, {"tax": "-0.5"}))

    assert prices == {
        "1234567.00": {"price": "1234567.00", "sales": "2"},
        "0.00": {"price": "0.00", "sales": "1"},
    }
    assert discounts == {
        "0.50": {"discounts": "0.50", "sales": "2", "total": "2.50"},
        "0.00": {"discounts": "0.00", "sales": "1", "total": "1.25"},
    }
    assert set(latest) == {"0.0000001", "-0.5000000"}


BY_TAX = {"topic": "sales", "message": sales.CHANGE, "key": "tax"}


def test_members_are_in_the_order_of_their_decimals(shop: Shop) -> None:
    members = shop.pipeline(group_by="shop", keep={"members": {"key": "sale_id", "sort": "price"}})
    prices = ["10", "9.99", "9999999999.99", "0", "100.5"]

    kept = shop.written(members, shop.created(*[{"price": price} for price in prices]))

    assert [row["price"] for _, row in sorted(kept.items())] == ["0", "9.99", "10", "100.5", "9999999999.99"]
    assert "a\0" + "0000000010.00" + "\0" + "1" in kept
    assert shop.batch.problems(members, *shop.created({"price": "-0.01"}, {})) == [
        "after.price is negative, its text would not sort as it does",
        "after.price is empty, a key needs it",
    ]


def test_a_text_that_is_no_decimal_is_a_problem_of_its_change_alone(shop: Shop) -> None:
    changes = shop.created({"price": "NaN"}, {"price": "1.234"}, {"price": "1"}, {"discounts": ["0.5", ""]})

    assert shop.batch.problems(shop.pipeline(), *changes) == [
        f"not a {sales.CHANGE}: {sales.ROW}.price is not a decimal(12,2): NaN",
        f"not a {sales.CHANGE}: {sales.ROW}.price is not a decimal(12,2): 1.234",
        None,
        f"not a {sales.CHANGE}: {sales.ROW}.discounts is not a decimal(2,2): ",
    ]
    assert set(shop.written(shop.pipeline(), changes)) == {"3"}


def test_columns_of_debezium_are_decimals_too(shop: Shop) -> None:
    reading = shop.pipeline("debezium-json", where="price >= 10.5 or price is null")
    changes = [debezium(sale_id=n, price=price) for n, price in enumerate(("10.5", 10.4, "12", None, "1.055E1"))]
    wrong = [debezium(price=price) for price in ("NaN", "1.234", 99999999999, "")]

    assert shop.written(reading, changes) == {
        "0": {"shop": "a", "amount": "1", "price": "10.50"},
        "2": {"sale_id": 2, "shop": "a", "amount": "1", "price": "12.00"},
        "3": {"sale_id": 3, "shop": "a", "amount": "1"},
        "4": {"sale_id": 4, "shop": "a", "amount": "1", "price": "10.55"},
    }
    assert shop.batch.problems(reading, *wrong) == [
        f"after.price is not a decimal(12,2): {price}" for price in ("NaN", "1.234", "99999999999", "")
    ]


def test_a_zero_of_a_deleted_row_may_be_made_up(shop: Shop) -> None:
    reading = shop.pipeline("debezium-json")
    deleted = [
        json.dumps({"op": "d", "source": {"lsn": 7}, "before": {"sale_id": 1, "price": price}, "after": None}).encode()
        for price in ("0.00", "", "7")
    ]

    lines = shop.batch.checked(reading, *deleted)

    assert [(line.problem, line.before.price) for line in lines] == [(None, None), (None, None), (None, Decimal(7))]
