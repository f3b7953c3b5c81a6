"""Two tables joined through the real flow, with duplicates, disorder and crashes, against a plain model."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecast.sales.v1.store_pb2 import Store
from statecast.sales.v1.store_sales_pb2 import StoreSales
from statecast.sales.v1.store_with_sales_pb2 import StoreWithSales
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.dead_letters import REASON, TOPIC
from testkit.stream_processor.micro_batches import EPOCH, BatchesOf, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.model import read_fenced
from testkit.topics import Record
from testkit.waiting import wait_until

STORES, SALES = "stores-by-key", "sales-by-store"
CLOSED = "closed"
"""The city of stores that the pipelines of the random histories leave out."""
BATCHES = 4
Row: TypeAlias = Store | StoreSales
Change: TypeAlias = tuple[str, str, tuple[int, int], Row | None]
"""Topic, key, (epoch, sequence) and row of a record."""
Rows: TypeAlias = dict[str, StoreWithSales]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def joining(shipped: PipelineOf) -> PipelineOf:
    """The shipped pipeline with another type of join: `joining("inner", where="...")`."""

    def make(kind: str, values: str = "state-record", **replaced: object) -> Pipeline:
        joined = {"topic": SALES, "message": "statecast.sales.v1.StoreSales", "as": "sales"}
        return shipped("stores-with-sales", table_join={**joined, "type": kind, "values": values}, **replaced)

    return make


def store(key: str, name: str = "", city: str = "") -> Store:
    return Store(store_id=key, name=name, city=city)


def sales(key: str, amount: int) -> StoreSales:
    return StoreSales(store_id=key, invoices=1, amount_cents=amount)


def record(change: Change) -> tuple[str, Record]:
    """Returns the record of a keyed topic that says so, with its topic."""
    topic, key, (epoch, sequence), row = change
    state = StateRecord(epoch=epoch, sequence=sequence)
    state.source.commit_time.FromSeconds(sequence)
    state.source.table = topic
    if row is None:
        return topic, Record(0, 0, key.encode(), None, {"statecast-state-record": state.SerializeToString()})
    state.payload = row.SerializeToString()
    return topic, Record(0, 0, key.encode(), state.SerializeToString(), {})


def plain_record(change: Change) -> tuple[str, Record]:
    """Returns the same of a topic with the rows themselves as values."""
    topic, key, _, row = change
    return topic, Record(0, 0, key.encode(), row and row.SerializeToString(), {})


def history(chance: Random) -> list[Change]:
    """Changes of a few keys of both tables, in two epochs: rows that come, change, close, go and come again."""
    changes: list[Change] = []
    for step in range(160):
        place = (1, step + 1) if step < 100 else (2, step - 99)
        topic, key = chance.choice([STORES, SALES]), f"store-{chance.randrange(7)}"
        row: Row | None = sales(key, step)
        if topic == STORES:
            row = store(key, f"name {step}", CLOSED if chance.random() < 0.2 else "open")
        changes.append((topic, key, place, None if chance.random() < 0.3 else row))
    return changes


def sent(changes: Sequence[Change], chance: Random) -> list[Change]:
    """Returns the changes with some of them once more, later on: near each other in the wrong order."""
    repeated = [*changes, *chance.sample(changes, 30)]
    places = {id(change): place for place, change in enumerate(changes)}
    return sorted(repeated, key=lambda change: places[id(change)] + chance.randrange(20))


def joined(stores: Sequence[Change], sold: Sequence[Change], kind: str) -> Rows:
    """Returns the records that must stand on the topic after the changes of each table; the last of a key counts."""
    left = {key: row for topic, key, _, row in stores if topic == STORES}
    left = {key: row for key, row in left.items() if isinstance(row, Store) and row.city != CLOSED}
    right = {key: row for topic, key, _, row in sold if topic == SALES}
    right = {key: row for key, row in right.items() if row is not None}
    keys = {"inner": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[kind]
    return {key: StoreWithSales(store=left.get(key), sales=right.get(key)) for key in keys}  # type: ignore[arg-type]  # each table has its own rows


def read(records: Sequence[Record]) -> Rows:
    """Returns the rows that a reader with the fence holds."""
    return {key: StoreWithSales.FromString(state.payload) for key, state in read_fenced(records).items()}


def versions(records: Sequence[Record]) -> dict[str, list[tuple[int, bytes | None]]]:
    """Returns, by key, the sequence and the value of each record."""
    written: dict[str, list[tuple[int, bytes | None]]] = defaultdict(list)
    for each in records:
        state = StateRecord.FromString(each.value or each.headers["statecast-state-record"])
        assert state.epoch == EPOCH
        written[each.key.decode()].append((state.sequence, each.value))
    return written


@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.long) for kind in ("inner", "left")), "outer"])
@settings(few_but_rich, max_examples=1)
@given(chance=st.randoms(use_true_random=False))
def test_the_join_ends_as_that_of_the_newest_rows(
    joining: PipelineOf, batches_of: BatchesOf, kind: str, chance: Random
) -> None:
    changes = history(chance)
    again = sent(changes, chance)
    by_offset = chance.random() < 0.5
    played = batches_of(joining(kind, "protobuf" if by_offset else "state-record", where=f"city <> '{CLOSED}'"))
    for piece in pieces(again, BATCHES):
        played.add_tables(plain_record(each) if by_offset and each[0] == SALES else record(each) for each in piece)
    played.run(crash_at=chance.randrange(BATCHES))
    played.run()

    assert read(played.written) == joined(changes, again if by_offset else changes, kind)
    for key, records in versions(played.written).items():
        once = sorted(set(records))
        assert len({sequence for sequence, _ in once}) == len(once), f"two records of {key} have one place"
        assert len(records) <= BATCHES + 1, f"{key} is told more than once in a batch"


def test_a_change_of_either_side_writes_the_row_anew_and_a_late_one_nothing(
    joining: PipelineOf, batches_of: BatchesOf
) -> None:
    first, renamed = store("s", "first"), store("s", "renamed")
    played = batches_of(joining("inner"))
    batches: list[list[Change]] = [
        [(STORES, "s", (1, 5), first)],
        [(SALES, "s", (1, 1), sales("s", 10)), (SALES, "s", (1, 2), sales("s", 20))],
        [(STORES, "s", (1, 9), renamed), (STORES, "s", (1, 5), first)],
        [(SALES, "s", (1, 1), sales("s", 10))],
        [(SALES, "s", (1, 3), None)],
        [(SALES, "s", (1, 2), sales("s", 20)), (STORES, "s", (1, 12), None)],
    ]
    for batch in batches:
        played.add_tables(map(record, batch))
    played.run()
    states = [each.value and StateRecord.FromString(each.value) for each in played.written]

    assert [each and StoreWithSales.FromString(each.payload) for each in states] == [
        StoreWithSales(store=first, sales=sales("s", 20)),
        StoreWithSales(store=renamed, sales=sales("s", 20)),
        None,
    ]
    assert [each.source.table for each in states if each] == [SALES, STORES]


def test_a_key_that_was_forgotten_stands_behind_its_deletion(joining: PipelineOf, batches_of: BatchesOf) -> None:
    played = batches_of(joining("outer", forget_deleted="1s"))
    there: list[Change] = [(STORES, "s", (9, 800), store("s")), (SALES, "s", (9, 800), sales("s", 1))]
    gone: list[Change] = [(STORES, "s", (9, 900), None), (SALES, "s", (9, 900), None)]
    played.add_tables(map(record, there))
    played.add_tables(map(record, gone))
    played.run()
    again: Change = (SALES, "s", (1, 1), sales("s", 3))

    def comes_again() -> bool:
        played.add_tables([record(again)])
        played.run()
        return read(played.written) == {"s": StoreWithSales(sales=sales("s", 3))}

    wait_until(comes_again, "the key is forgotten", timeout_s=60)
    sequences = [sequence for sequence, _ in versions(played.written)["s"]]
    assert sequences == sorted(set(sequences))


def test_a_row_that_is_too_large_for_the_topic_is_withheld_until_it_fits(
    joining: PipelineOf, batches_of: BatchesOf
) -> None:
    pipeline = replace(joining("left"), max_payload_bytes=100)
    played = batches_of(pipeline)
    names = ("first", "x" * 200, "last")
    for place, name in enumerate(names, start=1):
        played.add_tables([record((STORES, "s", (1, place), store("s", name)))])
    played.run()
    states = [each.value and StateRecord.FromString(each.value) for each in played.written]

    rows = [each and StoreWithSales.FromString(each.payload).store.name for each in states]
    assert rows == ["first", None, "last"]
    sequences = [sequence for sequence, _ in versions(played.written)["s"]]
    assert sequences == sorted(set(sequences))


def test_a_record_whose_key_is_not_in_its_row_is_set_aside_on_either_side(
    joining: PipelineOf, batches_of: BatchesOf
) -> None:
    wrong: list[Change] = [(STORES, "other", (1, 1), store("s")), (SALES, "other", (1, 1), sales("s", 1))]
    played = batches_of(joining("left"))
    played.add_tables(map(record, [*wrong, (STORES, "s", (1, 2), store("s"))]))
    played.run()

    assert {letter.headers[REASON].decode() for letter in played.letters} == {
        f"the record's key is not {key}, store_id: the rows of two tables are joined by it"
        for key in ("group_by", "table_join.key")
    }
    assert {letter.headers[TOPIC].decode() for letter in played.letters} == {STORES, SALES}
    assert [each.key for each in played.written] == [b"s"]
    assert (played.outcomes["set_aside"], played.state_rows) == (2, 1)
