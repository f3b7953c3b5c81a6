"""The tables of a domain, and the log that their triggers write."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, next_mutation
from cdc_simulator.domains import choose_domain, domain_names
from cdc_simulator.source_table import Row
from cdc_simulator.tables import ChangeLog, Tables
from testkit.cdc_simulator import MemoryRows, memory_tables

NOW_US = 1_724_848_496_123_456


@pytest.fixture(params=domain_names())
def domain(request: pytest.FixtureRequest) -> Domain:
    return choose_domain(request.param)


class Opened:
    """The tables of a database, and its log."""

    def __init__(self, database: Database, domain: Domain, parameters: DatabaseParameters) -> None:
        self.domain, self.parameters = domain, parameters
        self.tables, self.log = Tables(database, domain), ChangeLog(database, domain)
        self.first = self.log.snapshot_lsn

    def rows(self) -> dict[str, list[Row]]:
        return {name: [rows.nth(index) for index in range(len(rows))] for name, rows in self.tables.rows.items()}

    def make(self, count: int, now_us: int = NOW_US) -> list[Mutation]:
        mutations = []
        with self.tables.transaction(now_us) as commit_time_us:
            for _ in range(count):
                mutations.append(self._next(commit_time_us))
                self.tables.apply(mutations[-1])
        return mutations

    def make_and_fail(self) -> None:
        with self.tables.transaction(NOW_US):
            for _ in range(30):
                self.tables.apply(self._next(NOW_US))
            raise RuntimeError

    def _next(self, now_us: int) -> Mutation:
        return next_mutation(
            self.domain, self.tables.rows, self.parameters, self.tables.log_sequence_number + 1, now_us
        )


@pytest.fixture
def database(database_path: Path, domain: Domain, parameters: DatabaseParameters) -> Iterator[Database]:
    with closing(Database(database_path)) as database:
        create_if_new(database, domain, parameters, NOW_US)
        yield database


@pytest.fixture
def opened(database: Database, domain: Domain, parameters: DatabaseParameters) -> Opened:
    return Opened(database, domain, parameters)


def rows_of(tables: dict[str, MemoryRows]) -> dict[str, list[Row]]:
    return {name: [rows.nth(index) for index in range(len(rows))] for name, rows in tables.items()}


def test_they_begin_with_the_initial_rows(opened: Opened) -> None:
    assert opened.rows() == rows_of(memory_tables(opened.domain, opened.parameters, NOW_US))
    assert opened.tables.log_sequence_number == opened.first


def test_they_behave_as_the_workload_expects(opened: Opened) -> None:
    model = memory_tables(opened.domain, opened.parameters, NOW_US)
    for mutation in opened.make(500):
        model[mutation.table].apply(mutation)

    assert opened.rows() == rows_of(model)
    for name, rows in opened.tables.rows.items():
        assert rows.next_number == model[name].next_number
        assert rows.find(10**9) is None


def test_every_mutation_is_logged_with_its_row_before_and_after(opened: Opened) -> None:
    mutations = opened.make(300)
    logged = opened.log.read(opened.first, 1000)

    assert [change.lsn for change in logged] == list(range(opened.first + 1, opened.first + 301))
    assert {mutation.operation for mutation in mutations} == {"create", "update", "delete"}
    for mutation, change in zip(mutations, logged, strict=True):
        assert (change.operation, change.table.name) == (mutation.operation, mutation.table)
        assert change.before == mutation.before
        assert change.after == mutation.after


def test_opened_again_they_go_on_where_they_stopped(database: Database, opened: Opened) -> None:
    opened.make(200)
    opened.log.acknowledge(opened.first + 200)
    again = Opened(database, opened.domain, opened.parameters)

    assert again.rows() == opened.rows()
    assert again.tables.log_sequence_number == opened.first + 200
    assert {name: rows.next_number for name, rows in again.tables.rows.items()} == {
        name: rows.next_number for name, rows in opened.tables.rows.items()
    }


@pytest.mark.parametrize("domain", ["orders"], indirect=True)
def test_a_number_is_never_used_twice(database: Database, opened: Opened) -> None:
    orders = opened.tables.rows["orders"]
    with opened.tables.transaction(NOW_US):
        opened.tables.apply(Mutation("orders", orders.nth(len(orders) - 1), None))

    assert Tables(database, opened.domain).rows["orders"].next_number == orders.next_number == 51


def test_changes_of_one_transaction_share_its_name_and_commit_time(opened: Opened) -> None:
    opened.make(3, NOW_US + 1)
    opened.make(2, NOW_US + 2)
    logged = opened.log.read(opened.first, 10)
    first, second = f"tx-{opened.first + 1}", f"tx-{opened.first + 4}"

    assert [change.transaction_id for change in logged] == [first] * 3 + [second] * 2
    assert [change.commit_time_us - NOW_US for change in logged] == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("domain", ["orders"], indirect=True)
def test_commit_times_stand_still_when_the_clock_goes_backwards(opened: Opened) -> None:
    opened.make(1, NOW_US + 100)
    opened.make(1, NOW_US - 100)

    assert [change.commit_time_us - NOW_US for change in opened.log.read(opened.first, 10)] == [100, 100]


def test_a_transaction_that_fails_leaves_no_trace(opened: Opened) -> None:
    before = opened.rows()
    with pytest.raises(RuntimeError):
        opened.make_and_fail()

    assert opened.rows() == before
    assert opened.tables.log_sequence_number == opened.first
    assert opened.log.read(opened.first, 10) == []
    assert [mutation.operation for mutation in opened.make(1)] == [opened.log.read(opened.first, 10)[0].operation]


@pytest.mark.parametrize("domain", ["orders"], indirect=True)
def test_the_log_is_read_in_order_from_any_place(opened: Opened) -> None:
    assert [change.lsn for change in opened.log.read(0, 3)] == [1, 2, 3]
    assert [change.lsn for change in opened.log.read(48, 3)] == [49, 50]
    assert opened.log.read(50, 3) == []


@pytest.mark.parametrize("domain", ["orders"], indirect=True)
def test_what_is_acknowledged_is_forgotten_and_the_cursor_stays(database: Database, opened: Opened) -> None:
    before = opened.log.acknowledged_lsn
    opened.log.acknowledge(20)
    again = ChangeLog(database, opened.domain)

    assert (before, opened.log.acknowledged_lsn, again.acknowledged_lsn) == (0, 20, 20)
    assert again.read(0, 1)[0].lsn == 21
    assert again.snapshot_lsn == 50
