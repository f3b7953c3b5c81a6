"""Windows that end, through the real flow in micro-batches: border, late changes, crashes, and the state."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import InvoiceChange
from stream_processor.steps.windows import CLOCK
from testkit.stream_processor.changes import INVOICE_ROWS, START, invoice, invoice_change
from testkit.stream_processor.invoice_windows import (
    EACH_QUARTER,
    HOURLY,
    QUARTER,
    SIZE,
    invoice_history,
    kept,
)
from testkit.stream_processor.micro_batches import BatchesOf, MicroBatches, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.one_batch import OneBatch
from testkit.topics import Record

pytestmark = pytest.mark.timeout(600)

KEEP = timedelta(hours=2)
ENDING = {"time": "created_at", "size": "1h", "lateness": "30m", "keep": "2h"}
FIRST = "s\0002024-08-28T12:00:00.000000Z\0002024-08-28T13:00:00.000000Z"
Sales = dict[str, tuple[int, int]]
Playing = Callable[..., MicroBatches]


def at(hours: float, milliseconds: int = 0) -> datetime:
    return START + timedelta(hours=hours, milliseconds=milliseconds)


def sold(sequence: int, created: datetime, committed: datetime, cents: int = 100) -> InvoiceChange:
    """Returns a new invoice of the store `s`."""
    row = invoice(f"invoice-{sequence}", items=["item"])
    row.store_id = "s"
    row.total_amount_cents = cents
    row.created_at.FromDatetime(created)
    made = invoice_change(None, row, sequence)
    made.source.commit_time.FromDatetime(committed)
    return made


def held(records: Iterable[Record]) -> Sales:
    """Key → (invoices, cents), as a reader with the fence holds them."""
    sales = {key: HourlySales.FromString(state.payload) for key, state in read_fenced(records).items()}
    return {key: (each.invoices, each.amount_cents) for key, each in sales.items()}


@pytest.fixture
def shipped(shipped: PipelineOf) -> PipelineOf:
    """Gives shipped pipelines of invoices, with changes as their source."""
    return partial(shipped, source=INVOICE_ROWS)


@pytest.fixture
def play(shipped: PipelineOf, batches_of: BatchesOf) -> Playing:
    """Plays batches of changes through hourly-sales-by-store with these windows, from a checkpoint of its own."""

    def play(
        window: dict[str, str], *batches: Iterable[InvoiceChange], crash_at: int | None = None, **replaced: Any
    ) -> MicroBatches:
        pipeline = shipped("hourly-sales-by-store", window=window, **replaced)
        played = batches_of(pipeline)
        for each in batches:
            played.add(change.SerializeToString() for change in each)
        if crash_at is not None:
            played.run(crash_at=crash_at)
        played.run()
        return played

    return play


def test_a_window_stands_up_to_the_border_and_ends_a_millisecond_behind_it(play: Playing) -> None:
    border = at(1) + KEEP
    behind = border + timedelta(milliseconds=1)
    standing = play(ENDING, [sold(1, at(0.5), at(0.5))], [sold(2, border, border)], [sold(3, border, behind)])
    ended = play(ENDING, [sold(1, at(0.5), at(0.5))], [sold(2, border, behind)], [sold(3, border, border)])

    assert held(standing.written)[FIRST] == (1, 100)
    assert FIRST not in held(ended.written)
    assert [record.value is None for record in ended.written if record.key.decode() == FIRST] == [False, True]


def test_a_window_of_a_time_before_1970_stands_until_the_clock_has_passed_1970(play: Playing) -> None:
    before, behind = at(-60 * 365 * 24), at(-50 * 365 * 24)
    sales = [[sold(1, before, before)], [sold(2, before, before)]]
    standing, ended = play(ENDING, *sales), play(ENDING, *sales, [sold(3, behind, behind)], [sold(4, behind, behind)])

    assert list(held(standing.written).values()) == [(2, 200)]
    assert standing.observed("windows")["late"] == 0
    assert list(held(ended.written).values()) == [(2, 200)]
    assert ended.observed("windows")["ended"] == 1


def test_a_change_in_time_that_is_read_after_its_window_has_ended_brings_nothing_back(play: Playing) -> None:
    first, late, last = sold(1, at(0.5), at(0.5)), sold(2, at(0.6), at(0.7)), sold(3, at(4), at(4))
    played = play(ENDING, [first], [last], [late], [sold(4, at(4.1), at(4.1))])

    assert [record.value is None for record in played.written if record.key.decode() == FIRST] == [False, True]
    assert sum(invoices for invoices, _ in held(played.written).values()) == 2
    assert played.outcomes["applied"] == 4
    assert played.observed("windows") == {"ended": 1, "late": 1}


def test_a_window_that_lost_its_rows_before_its_end_is_deleted_once(play: Playing) -> None:
    made = sold(1, at(0.5), at(0.5))
    gone = invoice_change(made.after, None, 2)
    gone.source.commit_time.FromDatetime(at(0.6))
    played = play(ENDING, [made], [gone], [sold(3, at(4), at(4))])

    assert [record.value is None for record in played.written if record.key.decode() == FIRST] == [False, True]


def test_the_state_of_windows_that_have_ended_goes(play: Playing) -> None:
    # One row that moves from window to window, so that the state of rows is the same.
    for_good, ending = ({**HOURLY, **more} for more in ({}, {"keep": "2h"}))
    kept_rows = [play(for_good, *moving(count)).state_rows for count in (3, 6)]
    ended_rows = [play(ending, *moving(count)).state_rows for count in (3, 6)]

    assert kept_rows[1] - kept_rows[0] == 3
    assert ended_rows[1] == ended_rows[0]


def moving(count: int) -> list[list[InvoiceChange]]:
    """Batches of a row that is updated day by day, each time into the day's window."""
    batches, before = [], None
    for day in range(count):
        made = sold(1, at(24 * day), at(24 * day)).after
        change = invoice_change(before, made, day + 1)
        change.source.commit_time.FromDatetime(at(24 * day))
        if before is not None:
            # The change names no row in a window that was closed.
            change.ClearField("before")
        batches.append([change])
        before = made
    return batches


def test_a_wrong_commit_time_ends_no_window_before_its_record_was_written(shipped: PipelineOf, batch: OneBatch) -> None:
    pipeline = shipped("hourly-sales-by-store", window=ENDING)
    changes = [sold(1, at(0), at(0)), sold(2, at(0), at(24 * 365 * 100)), sold(3, at(0), at(0))]
    changes[2].source.ClearField("commit_time")

    checked = batch.checked(pipeline, batch.records(*changes, time=at(1)))

    assert [line[CLOCK] and line[CLOCK].timestamp() for line in checked] == [
        at(0).timestamp(),
        at(1).timestamp(),
        None,
    ]


def test_a_window_beyond_the_years_of_a_key_is_a_dead_letter_with_the_reason(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    def problems(hop: str, *times: str) -> list[str | None]:
        pipeline = shipped("hourly-sales-by-store", window={"time": "created_at", "size": "1h", "hop": hop})
        return batch.problems(pipeline, *[sold(1, datetime.fromisoformat(time), at(0)) for time in times])

    beyond = "after.created_at is in a window that begins before the year 1 or ends after 9999, and a key has no text"
    assert problems("1h", "9999-12-31T23:30:00") == [f"{beyond} for it"]
    assert problems("30m", "9999-12-31T22:59:00", "0001-01-01T00:10:00") == [None, f"{beyond} for it"]


SUMS = {"invoices": "count(*)", "amount_cents": "sum(total_amount_cents)", "average_cents": "avg(total_amount_cents)"}
EXTREMES = {"invoices": "min(total_amount_cents)", "amount_cents": "max(total_amount_cents)"}


@pytest.mark.parametrize(
    "more",
    [{"keep": {"aggregate": SUMS}}, {"keep": {"aggregate": EXTREMES}, "insert_only": True}],
    ids=["sums", "extremes"],
)
def test_windows_that_end_hold_what_others_do_until_then(play: Playing, more: dict[str, Any]) -> None:
    changes = invoice_history(Random(7))
    for_good, ending = (play({**EACH_QUARTER, **keep}, *pieces(changes, 3), **more) for keep in ({}, {"keep": "100d"}))

    assert for_good.written
    assert _ordered(ending.written) == _ordered(for_good.written)


def _ordered(records: Iterable[Record]) -> list[tuple[bytes, bytes]]:
    return sorted((record.key, record.value or b"") for record in records)


TUMBLING = pytest.param(HOURLY, SIZE, id="tumbling", marks=pytest.mark.long)
HOPPING = pytest.param(EACH_QUARTER, QUARTER, id="hopping")


@pytest.mark.parametrize(("window", "hop"), [TUMBLING, HOPPING])
@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_the_windows_that_have_not_ended_are_exact_and_no_others_stand(
    play: Playing, window: dict[str, str], hop: timedelta, chance: Random
) -> None:
    """Of two partitions one is ahead at times; a row's changes are on one of them, some of them twice."""
    changes = invoice_history(chance)
    repeated = [changes[number] for number in sorted([*range(len(changes)), *chance.sample(range(len(changes)), 20)])]
    partitions: list[list[InvoiceChange]] = [[], []]
    for each in repeated:
        row = each.after if each.HasField("after") else each.before
        partitions[int(row.invoice_number[-1]) % 2].append(each)
    rest = [list(pieces(each, 3)) for each in partitions if each]
    batches = []
    while any(rest):
        batches.append(chance.choice([each for each in rest if each]).pop(0))

    # Windows end with the next batch that has changes.
    played = play({**window, "keep": "2h"}, *batches, changes[-1:], crash_at=chance.randrange(len(batches)))

    assert held(played.written) == kept(changes, hop, KEEP)
