"""A change moves rows between groups, by the pipeline's keys and condition."""

from collections.abc import Callable

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from statecast.change.v1.change_pb2 import OPERATION_SNAPSHOT
from statecast.orders.v1.order_pb2 import OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.shapes.latest import LatestPipeline, retract
from stream_processor.steps.dead_letters import mark_letters
from stream_processor.steps.decode import decode
from stream_processor.steps.encode import TOMBSTONE_HEADER
from stream_processor.steps.flow import checked_changes
from stream_processor.steps.outcomes import with_outcome
from stream_processor.steps.state import entries
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import BatchesOf, MicroBatches, PipelineOf
from testkit.stream_processor.one_batch import OneBatch
from testkit.stream_processor.process import wait_until
from testkit.topics import Record

pytestmark = pytest.mark.timeout(600)

Effect = tuple[set[str], set[str]]

PLACED = "2024-08-28T12:00:00.000000Z"
ONE_LATER = "2024-08-28T12:00:01.000001Z"


@pytest.fixture
def lines(batch: OneBatch) -> Callable[..., list[Row]]:
    """The lines of the changes when no earlier state of their rows is known; one line per row of a change."""

    def run(pipeline: Pipeline, *changes: OrderChange) -> list[Row]:
        assert isinstance(pipeline, LatestPipeline)
        decoded = decode(batch.records(*changes), pipeline, batch.functions)
        sound = mark_letters(checked_changes(decoded, pipeline), pipeline)
        unknown = {"previous": F.lit(None).cast("array<string>"), "applied": F.lit(True)}
        keyed = pipeline.with_keys(with_outcome(sound, pipeline))
        return retract(entries(keyed, pipeline, batch.functions).withColumns(unknown)).collect()

    return run


@pytest.fixture
def effects(lines: Callable[..., list[Row]]) -> Callable[..., list[Effect]]:
    """For each change, the keys that the row leaves and the keys that it has now."""

    def run(pipeline: Pipeline, *changes: OrderChange) -> list[Effect]:
        rows = lines(pipeline, *changes)
        by_change = [[line for line in rows if line.sequence == n] for n in sorted({line.sequence for line in rows})]
        return [
            ({key for line in one for key in line.left}, {key for line in one for key in line.entered})
            for one in by_change
        ]

    return run


def test_latest_sets_and_deletes_the_group(shipped: PipelineOf, effects: Callable[..., list[Effect]]) -> None:
    key_changes = effects(
        shipped("orders-by-key"),
        change(None, order(), 1),
        change(order(), order(second=1), 2),
        change(order(), None, 3),
        change(order("order-1"), order("order-2"), 4),
    )

    assert key_changes == [
        (set(), {"order-1"}),
        (set(), {"order-1"}),
        ({"order-1"}, set()),
        ({"order-1"}, {"order-2"}),
    ]


def test_a_member_moves_with_its_sort_and_its_group(shipped: PipelineOf, effects: Callable[..., list[Effect]]) -> None:
    key_changes = effects(
        shipped("orders-by-customer"),
        change(order(), order(second=1.000001), 1),
        change(order(), order(customer="customer-2"), 2),
        change(order(), order(items=["item-2"]), 3),
    )

    first = f"customer-1\0{PLACED}\0order-1"
    assert key_changes == [
        ({first}, {f"customer-1\0{ONE_LATER}\0order-1"}),
        ({first}, {f"customer-2\0{PLACED}\0order-1"}),
        (set(), {first}),
    ]


def test_a_repeated_group_changes_only_where_its_elements_do(
    shipped: PipelineOf, effects: Callable[..., list[Effect]]
) -> None:
    key_changes = effects(
        shipped("orders-by-item"),
        change(order(items=["item-1", "item-2", "item-2"]), order(items=["item-2", "item-3", "item-3"]), 1),
        change(None, order(items=[]), 2),
    )

    assert key_changes == [
        ({f"item-1\0{PLACED}\0order-1"}, {f"item-2\0{PLACED}\0order-1", f"item-3\0{PLACED}\0order-1"}),
        (set(), set()),
    ]


def test_a_number_sorts_as_padded_text_unless_it_is_negative(
    shipped: PipelineOf, effects: Callable[..., list[Effect]], batch: OneBatch
) -> None:
    pipeline = shipped("orders-by-customer", keep={"members": {"key": "order_id", "sort": "total_cents"}})
    row, negative = order(), order()
    row.total_cents, negative.total_cents = 1234, -1

    [(_, entered)] = effects(pipeline, change(None, row, 1))

    assert entered == {"customer-1\0" + "0000000000000001234" + "\0order-1"}
    assert batch.problems(pipeline, change(None, negative, 1)) == [
        "after.total_cents is negative, its text would not sort as it does"
    ]


def test_a_row_that_stops_to_match_leaves_and_one_that_starts_enters(
    shipped: PipelineOf, effects: Callable[..., list[Effect]]
) -> None:
    matching, other = order(), order()
    other.currency = "USD"
    key_changes = effects(
        shipped("orders-by-key", where="currency = 'EUR' and size(items) > 0"),
        change(matching, other, 1),
        change(other, matching, 2),
        change(other, other, 3),
        change(matching, matching, 4),
    )

    assert key_changes == [({"order-1"}, set()), (set(), {"order-1"}), (set(), set()), (set(), {"order-1"})]


def test_a_condition_that_cannot_be_computed_is_not_true(
    shipped: PipelineOf, effects: Callable[..., list[Effect]]
) -> None:
    pipeline = shipped("orders-by-key", where="cast(tracking_number as int) > 0")

    assert effects(pipeline, change(None, order(), 1)) == [(set(), set())]


@pytest.mark.parametrize("where", ["custmer_id = 'x'", "currency =", "total_cents"])
def test_a_condition_that_does_not_fit_the_row_names_the_file(
    shipped: PipelineOf, lines: Callable[..., list[Row]], where: str
) -> None:
    with pytest.raises(PipelineFileError, match=r"orders-by-key\.yaml: where: "):
        lines(shipped("orders-by-key", where=where), change(None, order(), 1))


def test_a_row_that_cannot_have_a_key_has_a_problem(shipped: PipelineOf, batch: OneBatch) -> None:
    unsorted = order()
    unsorted.ClearField("updated_at")
    changes = [
        change(None, order(customer=""), 1),
        change(order(customer="a\0b"), order(), 2),
        change(None, order(order_id=""), 3),
        change(order(), unsorted, 4),
        change(None, order(), 5),
    ]

    assert batch.problems(shipped("orders-by-customer"), *changes) == [
        "after.customer_id is empty, a key needs it",
        "before.customer_id holds a NUL, which separates the parts of a key",
        "after.order_id is empty, a key needs it",
        "after.updated_at is empty, a key needs it",
        None,
    ]
    assert batch.problems(shipped("orders-by-item"), change(None, order(items=["item-1", ""]), 1)) == [
        "after.items.item_id is empty, a key needs it"
    ]
    # Rows that do not match are not checked.
    assert batch.problems(shipped("orders-by-customer", where="false"), changes[0]) == [None]


@pytest.fixture
def batches(batches_of: BatchesOf, shipped: PipelineOf) -> Callable[..., MicroBatches]:
    """Makes micro-batches of orders-by-customer, with keys of its file replaced."""

    def make(**replaced: object) -> MicroBatches:
        return batches_of(shipped("orders-by-customer", **replaced))

    return make


def test_a_row_that_is_gone_is_remembered_for_a_while_only(batches: Callable[..., MicroBatches]) -> None:
    played = batches(forget_deleted="1s")
    rows = [order(f"order-{number}") for number in range(10)]
    played.add(change(None, row, number) for number, row in enumerate(rows, 1))
    played.run()
    lively = played.state_rows
    played.add(change(row, None, number) for number, row in enumerate(rows[:9], 11))
    played.run()

    def forgotten() -> bool:
        played.add([change(None, order("order-9"), 10)])
        played.run()
        return played.state_rows == 1

    assert lively == 10
    wait_until(forgotten, lambda: f"{played.state_rows} rows")


def test_duplicates_and_late_changes_of_what_the_row_has_write_nothing(batches: Callable[..., MicroBatches]) -> None:
    played = batches()
    new, newer = change(None, order(), 5), change(order(), order(items=["item-2"]), 9)
    played.add([new])
    played.add([newer])
    played.run()
    written = len(played.written)
    played.add(each for each in (new, change(None, order(items=["item-3"]), 4), newer))
    played.run()

    assert written == 2
    assert len(played.written) == written


def test_a_late_change_takes_the_row_from_where_it_is_not(batches: Callable[..., MicroBatches]) -> None:
    """As after a crash, when changes of a row on several partitions are read again in another order."""
    played = batches()
    in_order = [change(None, order(), 1), change(order(), order(customer="customer-2"), 2)]
    in_order += [change(order(customer="customer-2"), order(customer=f"customer-{end}"), end) for end in (3, 4)]
    for number in (1, 4, 2, 3):
        played.add([in_order[number - 1]])
    played.run()
    records = [(each.key[:10].decode(), each.value is None) for each in played.written]
    late = [StateRecord.FromString(each.headers[TOMBSTONE_HEADER]) for each in played.written[-2:]]

    assert records[-2:] == [("customer-2", True), ("customer-3", True)]
    assert [(each.sequence, each.HasField("source")) for each in late] == [(4, False), (4, False)]
    assert ("customer-4", True) not in records


def test_a_row_that_comes_under_a_key_that_is_not_taken_leaves(batches: Callable[..., MicroBatches]) -> None:
    played = batches(where_key="^EU-")
    steps = [(b"EU-1", change(None, order(), 1)), (b"US-1", change(order(), order(second=1), 2))]
    others = [(b"US-2", change(None, order("order-2"), 3).SerializeToString()), (b"US-3", b"no change")]
    for key, value in [*((key, each.SerializeToString()) for key, each in steps), *others]:
        played.add_records([Record(0, 0, key, value, {})])
    played.run()

    assert [(each.key, each.value is None) for each in played.written] == [
        (f"customer-1\0{PLACED}\0order-1".encode(), False),
        (f"customer-1\0{PLACED}\0order-1".encode(), True),
    ]


def test_what_is_no_regular_expression_is_refused(shipped: PipelineOf, batch: OneBatch) -> None:
    with pytest.raises(
        PipelineFileError, match=r"orders-by-key\.yaml: where_key: is not a regular expression: Unclosed"
    ):
        batch.problems(shipped("orders-by-key", where_key="(EU"), change(None, order(), 1))


def test_a_change_without_before_takes_the_row_out_of_its_group(batches: Callable[..., MicroBatches]) -> None:
    played = batches()
    blind = change(order(), order(customer="customer-2"), 2)
    blind.ClearField("before")
    blind.operation = OPERATION_SNAPSHOT
    played.add([change(None, order(), 1)])
    played.add([blind])
    played.run()

    assert [(each.key[:10].decode(), each.value is None) for each in played.written] == [
        ("customer-1", False),
        ("customer-1", True),
        ("customer-2", False),
    ]
