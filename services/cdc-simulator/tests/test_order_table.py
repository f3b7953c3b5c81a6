"""The table `orders` and what its triggers log."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_simulator.change_log import ChangeLog
from cdc_simulator.database import Database, create_if_new
from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.order_row import OrderRow, Shop
from cdc_simulator.order_table import OrderTable
from cdc_simulator.testing import MemoryTable
from cdc_simulator.workload import Delete, Insert, Mutation, Update, next_mutation

NOW_US = 1_724_848_496_123_456


@pytest.fixture
def database(database_path: Path, shop: Shop) -> Iterator[Database]:
    with closing(Database(database_path)) as database:
        create_if_new(database, shop, initial_rows(shop, NOW_US), NOW_US)
        yield database


def rows(table: OrderTable) -> list[OrderRow]:
    return [table.nth(index) for index in range(len(table))]


def make(table: OrderTable, shop: Shop, count: int, now_us: int = NOW_US) -> list[Mutation]:
    made = []
    with table.transaction(now_us) as commit_time_us:
        for _ in range(count):
            made.append(next_mutation(table, shop, table.log_sequence_number + 1, commit_time_us))
            table.apply(made[-1])
    return made


def make_and_fail(table: OrderTable, shop: Shop) -> None:
    with table.transaction(NOW_US):
        for _ in range(30):
            table.apply(next_mutation(table, shop, table.log_sequence_number + 1, NOW_US))
        raise RuntimeError


def test_it_begins_with_the_initial_rows(database: Database, shop: Shop) -> None:
    table = OrderTable(database)

    assert rows(table) == list(initial_rows(shop, NOW_US))
    assert (table.next_number, table.log_sequence_number) == (51, 50)


def test_it_behaves_as_the_workload_expects_of_a_table(database: Database, shop: Shop) -> None:
    table, model = OrderTable(database), MemoryTable(initial_rows(shop, NOW_US), 51)
    for mutation in make(table, shop, 500):
        model.apply(mutation)

    assert rows(table) == [model.nth(index) for index in range(len(model))]
    assert table.next_number == model.next_number


def test_every_mutation_is_logged_with_its_row_before_and_after(database: Database, shop: Shop) -> None:
    mutations = make(OrderTable(database), shop, 300)
    logged = ChangeLog(database).read(50, 1000)

    assert [change.lsn for change in logged] == list(range(51, 351))
    assert {type(mutation) for mutation in mutations} == {Insert, Update, Delete}
    for mutation, change in zip(mutations, logged, strict=True):
        assert change.operation == mutation.operation
        assert change.before == getattr(mutation, "before", None)
        assert change.after == getattr(mutation, "after", None)


def test_opened_again_it_goes_on_where_it_stopped(database: Database, shop: Shop) -> None:
    first = OrderTable(database)
    make(first, shop, 200)
    ChangeLog(database).acknowledge(250)
    again = OrderTable(database)

    assert rows(again) == rows(first)
    assert (again.next_number, again.log_sequence_number) == (first.next_number, 250)


def test_a_number_is_never_used_twice(database: Database, shop: Shop) -> None:
    table = OrderTable(database)
    with table.transaction(NOW_US):
        table.apply(Delete(table.nth(len(table) - 1)))

    assert OrderTable(database).next_number == table.next_number == 51


def test_changes_of_one_transaction_share_its_name_and_commit_time(database: Database, shop: Shop) -> None:
    table = OrderTable(database)
    make(table, shop, 3, NOW_US + 1)
    make(table, shop, 2, NOW_US + 2)
    logged = ChangeLog(database).read(50, 10)

    assert [change.transaction_id for change in logged] == ["tx-51"] * 3 + ["tx-54"] * 2
    assert [change.commit_time_us - NOW_US for change in logged] == [1, 1, 1, 2, 2]


def test_commit_times_stand_still_when_the_clock_goes_backwards(database: Database, shop: Shop) -> None:
    table = OrderTable(database)
    make(table, shop, 1, NOW_US + 100)
    make(table, shop, 1, NOW_US - 100)

    assert [change.commit_time_us - NOW_US for change in ChangeLog(database).read(50, 10)] == [100, 100]


def test_a_transaction_that_fails_leaves_no_trace(database: Database, shop: Shop) -> None:
    table = OrderTable(database)
    before = rows(table)
    with pytest.raises(RuntimeError):
        make_and_fail(table, shop)

    assert rows(table) == before
    assert (table.next_number, table.log_sequence_number) == (51, 50)
    assert ChangeLog(database).read(50, 10) == []
    assert [mutation.operation for mutation in make(table, shop, 1)] == [ChangeLog(database).read(50, 10)[0].operation]
