"""A pipeline checked against the contract."""

from datetime import timedelta
from typing import Any

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import explain
from stream_processor.shapes.aggregate import AggregatePipeline
from stream_processor.shapes.latest import LatestPipeline
from stream_processor.shapes.members import MembersPipeline
from stream_processor.shapes.route import RoutePipeline
from stream_processor.shapes.table_join import TableJoinPipeline
from stream_processor.shapes.totals import TotalsPipeline
from testkit.stream_processor.changes import INVOICE_CHANGES, INVOICE_ROWS, LOYALTY_OF_CHANGES
from testkit.stream_processor.micro_batches import PipelineOf

MESSAGE = "statecast.orders.v1.OrderChange"
TABLE = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order", "format": "table"}
POSITIONS = {"topic": "open-positions", "message": "statecast.portfolio.v1.OpenPositionChange"}
STORE = {"topic": "stores-by-key", "message": "statecast.sales.v1.Store", "key": "store_id", "as": "store"}
SALES = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales", "as": "sales"}


def test_latest_has_a_group_alone(shipped: PipelineOf) -> None:
    pipeline = shipped("orders-by-key")

    assert isinstance(pipeline, LatestPipeline)
    assert str(pipeline.group) == "order_id"
    assert "under order_id" in explain(pipeline)[-3]
    assert pipeline.row.full_name == "statecast.orders.v1.Order"


def test_members_have_a_key_and_a_sort(shipped: PipelineOf) -> None:
    pipeline = shipped("orders-by-item")

    assert isinstance(pipeline, MembersPipeline)
    assert (str(pipeline.group), str(pipeline.member), str(pipeline.sort)) == ("items.item_id", "order_id", "placed_at")


def test_a_path_may_begin_with_the_name_of_the_source(shipped: PipelineOf) -> None:
    keep = {"members": {"key": "orders.order_id", "sort": "orders.placed_at"}}
    pipeline = shipped("orders-by-item", group_by="orders.items.item_id", keep=keep)

    assert isinstance(pipeline, MembersPipeline)
    assert (str(pipeline.group), str(pipeline.member), str(pipeline.sort)) == ("items.item_id", "order_id", "placed_at")
    with pytest.raises(PipelineFileError, match=r"group_by: no field 'order' "):
        shipped("orders-by-item", group_by="order.items.item_id")


@pytest.mark.parametrize(
    ("partition_by", "problem"),
    [
        ("total_amount_cents > 1", "sink.partition_by: is of type bool; it must be an integer or a text"),
        ("stor_id", "sink.partition_by: no field 'stor_id'"),
    ],
)
def test_partitions_are_chosen_by_an_integer_or_a_text(shipped: PipelineOf, partition_by: str, problem: str) -> None:
    sink = {"topic": "t", "message": "statecast.sales.v1.HomeDelivery"}
    shipped("home-delivery", sink={**sink, "partition_by": "store_id"})

    with pytest.raises(PipelineFileError, match=f"home-delivery.yaml: {problem}"):
        shipped("home-delivery", sink={**sink, "partition_by": partition_by})


def test_the_rows_key_is_the_groups_or_the_members_unless_said(shipped: PipelineOf) -> None:
    pipelines = [shipped(name) for name in ("orders-by-key", "orders-by-item", "us-share-holders")]

    assert {each.name: str(each.primary_key) for each in pipelines if not isinstance(each, RoutePipeline)} == {
        "orders-by-key": "order_id",
        "orders-by-item": "order_id",
        "us-share-holders": "None",
    }


def test_a_key_may_have_several_columns(shipped: PipelineOf) -> None:
    key = ["order_id", "currency"]
    source = {"topic": "orders", "message": MESSAGE, "key": key}
    latest = shipped("orders-by-key", source=source, group_by=key)
    members = shipped("orders-by-customer", source=source, keep={"members": {"key": key, "sort": "updated_at"}})
    grouped = shipped("orders-by-customer", source=source, group_by="currency")

    assert isinstance(latest, LatestPipeline)
    assert isinstance(members, MembersPipeline)
    assert isinstance(grouped, MembersPipeline)
    assert latest.primary_key == members.primary_key == members.member == grouped.primary_key
    assert (members.member.texts, grouped.member.texts) == (("order_id", "currency"), ("order_id",))
    assert "under order_id + currency" in explain(latest)[-3]


def test_a_group_may_have_several_paths(shipped: PipelineOf) -> None:
    pipeline = shipped("orders-by-customer", group_by=["customer_id", "status"], where_key="^order-1")

    assert pipeline.group.texts == ("customer_id", "status")
    assert {
        "  where key   matches ^order-1",
        "  write       orders-by-customer: statecast.orders.v1.Order under "
        "customer_id + status + updated_at + order_id",
    } <= {*explain(pipeline)}


def test_a_tables_rows_are_its_message(shipped: PipelineOf) -> None:
    pipeline = shipped("orders-by-customer", source=TABLE)

    assert (pipeline.row.name, pipeline.change.name, pipeline.table) == ("Order", "Order", "state-record")
    assert (
        explain(pipeline)[1] == "  read        orders-by-key: statecast.orders.v1.Order as table of state-record values"
    )
    assert any("remember    per key of the table's records" in line for line in explain(pipeline))


def test_debeziums_records_have_the_key_of_an_aggregates_rows(shipped: PipelineOf) -> None:
    pipeline = shipped("us-share-holders", source={**POSITIONS, "format": "debezium-json"})

    assert isinstance(pipeline, AggregatePipeline)
    assert (pipeline.primary_key, pipeline.keyed_by_record) == (None, True)
    assert any("per key of the connector's records" in line for line in explain(pipeline))


def test_an_aggregate_knows_its_numbers_and_its_window(shipped: PipelineOf) -> None:
    pipeline = shipped("hourly-sales-by-store")

    assert isinstance(pipeline, AggregatePipeline)
    assert pipeline.definition.keep.shape == "aggregate"
    assert [(each.field.name, each.function, each.argument) for each in pipeline.aggregates] == [
        ("invoices", "count", None),
        ("amount_cents", "sum", "total_amount_cents"),
        ("average_cents", "avg", "total_amount_cents"),
    ]
    assert [field.full_name for field in pipeline.group_fields] == ["statecast.sales.v1.HourlySales.store_id"]
    assert pipeline.window is not None
    assert (str(pipeline.window.time), pipeline.window.size, pipeline.window.lateness) == (
        "created_at",
        timedelta(hours=1),
        timedelta(days=7),
    )


def test_a_join_and_a_selection_are_resolved(shipped: PipelineOf) -> None:
    pipeline = shipped("invoices-with-store")

    assert isinstance(pipeline, LatestPipeline)
    assert [(join.topic, join.message.name, str(join.key), join.name) for join in pipeline.joins] == [
        ("stores-by-key", "Store", "store_id", "store")
    ]
    assert pipeline.select == {"invoice": "row", "store": "store"}
    assert pipeline.sink.full_name == "statecast.sales.v1.InvoiceWithStore"


def test_a_route_remembers_no_rows(shipped: PipelineOf) -> None:
    lines = shipped("masked-lines", source=INVOICE_CHANGES)

    assert isinstance(lines, RoutePipeline)
    assert (lines.primary_key, lines.knows_rows, str(lines.explode)) == (None, False, "lines")
    assert lines.operations == ("OPERATION_CREATE", "OPERATION_UPDATE", "OPERATION_SNAPSHOT")


def test_a_route_with_totals_remembers_rows(shipped: PipelineOf) -> None:
    points = shipped("loyalty-notifications", **LOYALTY_OF_CHANGES)

    assert isinstance(points, TotalsPipeline)
    assert (str(points.primary_key), str(points.group)) == ("invoice_number", "customer_card_no")
    assert points.operations == ("OPERATION_CREATE", "OPERATION_SNAPSHOT")
    assert [str(each.argument) for each in points.aggregates] == ["total_amount_cents div 100"]
    assert "  keep        per group: total_points = sum(total_amount_cents div 100)" in explain(points)


def test_both_sides_of_a_table_join_are_resolved(shipped: PipelineOf) -> None:
    pipeline = shipped("stores-with-sales", where="city <> 'closed'", table_join={**SALES, "values": "json"})

    assert isinstance(pipeline, TableJoinPipeline)
    assert (pipeline.joined_as, pipeline.join_type) == ("sales", "inner")
    read = [(each.source_topic, each.row.name, each.table, each.definition.where) for each in pipeline.sides]
    assert read == [
        ("stores-by-key", "Store", "state-record", "city <> 'closed'"),
        ("sales-by-store", "StoreSales", "json", None),
    ]


def test_an_exploded_element_can_be_the_group(shipped: PipelineOf) -> None:
    assert str(shipped("masked-lines", group_by="lines.item_code").group) == "lines.item_code"


def test_a_nested_group_is_summed_over_its_elements(shipped: PipelineOf) -> None:
    """The element's fields are reached as `element.x`, the row's by their names."""
    replaced = {
        "source": {"topic": "invoices", "message": "statecast.sales.v1.InvoiceChange", "key": "invoice_number"},
        "where": None,
        "group_by": "lines.item_code",
        "sink": {"topic": "t", "message": "statecast.sales.v1.MaskedLine"},
        "keep": {"aggregate": {"item_price_cents": "sum(element.item_price_cents * element.item_quantity)"}},
    }

    pipeline = shipped("us-share-holders", **replaced)

    assert isinstance(pipeline, AggregatePipeline)
    [aggregate] = pipeline.aggregates
    assert aggregate.argument == "element.item_price_cents * element.item_quantity"


REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "orders-by-key": [
        ({"source": {"topic": "orders", "message": MESSAGE + "s"}}, "source.message: no message"),
        ({"source": {"topic": "orders", "message": "statecast.orders.v1.Order"}}, "source.message: .* is not a change"),
        ({"where": "(" * 2_000 + "true" + ")" * 2_000}, "where: is nested too deeply"),
        ({"group_by": "custmer_id"}, "group_by: no field 'custmer_id' .* did you mean customer_id?"),
        ({"group_by": "items"}, "group_by: items is of type message; it must be one of: string, integer, enum, bool"),
        ({"group_by": "placed_at"}, "group_by: placed_at is of type timestamp"),
        ({"keep": {"members": {"key": "id", "sort": "updated_at"}}}, "keep.members.key: no field 'id'"),
        ({"keep": {"members": {"key": "items.item_id", "sort": "updated_at"}}}, "keep.members.key: .* many values"),
        ({"keep": {"members": {"key": "order_id", "sort": "status"}}}, "keep.members.sort: status is of type enum"),
        (
            {"source": {"topic": "orders", "message": MESSAGE, "key": ["order_id", "currency"]}},
            "group_by: order_id is not the row's key order_id . currency",
        ),
        ({"group_by": ["order_id", "items.item_id"]}, "group_by: .* many values of one row"),
        ({"source": {**TABLE, "epoch": 2}}, "source.epoch: has no meaning in format table"),
        ({"source": {**TABLE, "format": "protobuf", "values": "json"}}, "source.values: has no meaning"),
        ({"group_by": "items.item_id"}, "group_by: .* many values of one row; latest needs one"),
        (
            {"store": {"readers": {"field": "customer"}}},
            "store.readers.field: no field 'customer' .* did you mean customer_id?",
        ),
        ({"store": {"readers": {"field": "total_cents"}}}, "store.readers.field: .*Order.total_cents is no text"),
        (
            {"store": {"readers": {"field": "customer_id", "group": True}}},
            "store.readers.group: .* grouped by order_id",
        ),
    ],
    "orders-by-customer": [
        (
            {"source": {"topic": "orders", "message": MESSAGE, "key": ["order_id", "currency"]}},
            "keep.members.key: order_id lacks currency of source.key: two rows could be one member",
        ),
        ({"group_by": ["customer_id", "items.item_id"]}, "group_by: .* a group of several paths"),
        (
            {"keep": "latest", "source": {**POSITIONS, "key": "position_id"}, "group_by": "client"},
            "group_by: client is not the row's key position_id",
        ),
        ({"source": {"topic": "o", "message": MESSAGE, "key": "ordr_id"}}, "source.key: no field"),
    ],
    "us-share-holders": [
        (
            {
                "source": {
                    "topic": "t",
                    "message": "statecast.portfolio.v1.OpenPosition",
                    "format": "table",
                    "key": "client",
                }
            },
            "source.key: has no meaning for an aggregate of a table",
        ),
        (
            {"sink": {"topic": "t", "message": "statecast.portfolio.v1.Shareholder"}},
            "sink.message: no message .* did you mean statecast.portfolio.v1.ShareHolder?",
        ),
        ({"group_by": "ticker"}, "group_by: no field 'ticker' in .*ShareHolder"),
        ({"window": {"time": "ticker", "size": "1h"}}, "window: no field 'window_start'"),
    ],
    "home-delivery": [
        ({"source": TABLE, "keep": {"route": {"operations": ["create"]}}}, "keep.route.operations: has no"),
        ({"group_by": "lines.item_code"}, "group_by: .* many values of one row; explode them"),
        ({"store": {"readers": "everyone"}}, "store: has no meaning with keep: route"),
    ],
    "loyalty-notifications": [
        (
            {"source": INVOICE_ROWS, "group_by": "lines.item_code"},
            "group_by: .* many values of one row; keep.route.totals needs one",
        ),
        (
            {"source": INVOICE_ROWS, "keep": {"route": {"totals": {"points": "count(*)"}}}},
            "keep.route.totals.points: no field",
        ),
        (
            {"source": INVOICE_ROWS, "keep": {"route": {"totals": {"earned_points": "count(*)"}}}},
            "keep.route.totals.earned_points: earned_points is filled by select",
        ),
        (
            {"source": INVOICE_ROWS, "keep": {"route": {"totals": {"total_points": "max(total_amount_cents)"}}}},
            "keep.route.totals.total_points: max cannot be taken back when a row changes; running totals are",
        ),
    ],
    "hourly-sales-by-store": [
        ({"window": {"time": "store_id", "size": "1h"}}, "window.time: store_id is of type string"),
    ],
    "invoices-with-store": [
        ({"joins": [{**STORE, "message": "statecast.sales.v1.Stor"}]}, r"joins\[0\].message: no message"),
        ({"joins": [{**STORE, "key": "stor_id"}]}, r"joins\[0\].key: .* did you mean store_id"),
        ({"joins": [STORE, STORE]}, r"joins\[1\].as: store already names something else"),
        ({"joins": [{**STORE, "as": "lines"}]}, r"joins\[0\].as: lines already names"),
    ],
    "masked-lines": [
        ({"explode": "line"}, "explode: no field 'line' .* did you mean lines?"),
        ({"explode": "currency"}, "explode: currency is not repeated"),
    ],
    "stores-with-sales": [
        (
            {"table_join": {**SALES, "message": "statecast.sales.v1.StoreSale"}},
            "table_join.message: no message .* did you mean .*StoreSales?",
        ),
        ({"table_join": {**SALES, "as": "city"}}, "table_join.as: city already names something else"),
        ({"table_join": {**SALES, "as": "row"}}, "table_join.as: row already names something else"),
        ({"table_join": {**SALES, "as": "sale"}}, "select.sales: no field .sales. .* did you mean sale?"),
        ({"table_join": {**SALES, "key": "store"}}, "table_join.key: no field 'store' .* did you mean store_id?"),
        (
            {"table_join": {**SALES, "message": "statecast.sales.v1.CustomerRewards"}},
            "table_join.key: no field 'store_id'",
        ),
        (
            {"table_join": {**SALES, "message": "statecast.sales.v1.InvoiceChange"}},
            "table_join.key: no field 'store_id'",
        ),
    ],
}
"""Keys that a file of these pipelines cannot have, and the problem that it has then."""


@pytest.mark.parametrize(
    ("name", "replaced", "problem"), [(name, *each) for name, several in REFUSED.items() for each in several]
)
def test_what_does_not_fit_the_contract_or_the_shape_is_refused(
    shipped: PipelineOf, name: str, replaced: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PipelineFileError, match=f"{name}.yaml: .*{problem}"):
        shipped(name, **replaced)
