"""The database file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import DatabaseParameters, Mutation
from cdc_simulator.domains import choose_domain
from cdc_simulator.errors import DatabaseError, DatabaseInUseError
from cdc_simulator.tables import ChangeLog
from statecast_service.errors import SettingsError

NOW_US = 1_724_848_496_123_456


ORDERS = choose_domain("orders")


def create(database: Database, parameters: DatabaseParameters, now_us: int = NOW_US) -> bool:
    return create_if_new(database, ORDERS, parameters, now_us)


def test_a_new_one_holds_the_initial_rows_and_their_snapshot(
    database_path: Path, parameters: DatabaseParameters
) -> None:
    with closing(Database(database_path)) as database:
        is_new = create(database, parameters)
        changes = ChangeLog(database, ORDERS).read(0, 1000)

    assert is_new
    assert [change.lsn for change in changes] == list(range(1, 51))
    assert [change.after for change in changes] == [insert.after for insert in ORDERS.initial_rows(parameters, NOW_US)]
    assert all(change.snapshot and change.before is None for change in changes)


def test_an_existing_one_is_left_as_it_is(database_path: Path, parameters: DatabaseParameters) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)
    with closing(Database(database_path)) as database:
        is_new = create(database, parameters, NOW_US + 10**9)

        assert not is_new
        assert ChangeLog(database, ORDERS).epoch == NOW_US // 1000


def test_a_later_one_has_a_higher_epoch(tmp_path: Path, parameters: DatabaseParameters) -> None:
    epochs = []
    for name, now_us in (("first", NOW_US), ("second", NOW_US + 1000)):
        with closing(Database(tmp_path / name)) as database:
            create(database, parameters, now_us)
            epochs.append(ChangeLog(database, ORDERS).epoch)

    assert epochs[1] > epochs[0]


def test_one_that_was_killed_while_it_was_made_is_made_anew(
    database_path: Path, parameters: DatabaseParameters
) -> None:
    def killed(parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
        yield from islice(ORDERS.initial_rows(parameters, now_us), 20)
        raise KeyboardInterrupt

    with closing(Database(database_path)) as database, pytest.raises(KeyboardInterrupt):
        create_if_new(database, replace(ORDERS, initial_rows=killed), parameters, NOW_US)
    with closing(Database(database_path)) as database:
        assert create(database, parameters)
        assert len(ChangeLog(database, ORDERS).read(0, 1000)) == 50


@pytest.mark.parametrize("field", ["seed", "rows", "customers", "items"])
def test_a_setting_that_it_was_not_made_with_is_refused_by_name(
    database_path: Path, parameters: DatabaseParameters, field: str
) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)

        with pytest.raises(SettingsError, match=f"^CDC_SIMULATOR_{field.upper()}=999: .* set it back, or set"):
            create(database, parameters._replace(**{field: 999}))


def test_a_database_of_another_domain_is_refused_by_name(database_path: Path, parameters: DatabaseParameters) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)

        with pytest.raises(SettingsError, match=r"^CDC_SIMULATOR_DOMAIN=odds: .* was made with orders; set it back"):
            create_if_new(database, choose_domain("odds"), parameters, NOW_US)


def test_it_is_open_in_one_simulator_only(database_path: Path, parameters: DatabaseParameters) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)
        with pytest.raises(DatabaseInUseError, match=f"another simulator has the database {database_path}"):
            Database(database_path)
    Database(database_path).close()


def test_others_may_read_it_meanwhile(database_path: Path, parameters: DatabaseParameters) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)
        with closing(sqlite3.connect(database_path)) as reader:
            row = reader.execute("SELECT order_id FROM orders WHERE number = 42").fetchone()

    assert row == ("order-000042",)


def test_a_file_of_something_else_is_refused_and_kept(database_path: Path, parameters: DatabaseParameters) -> None:
    database_path.parent.mkdir()
    database_path.write_text("not a database, but somebody's text " * 100)

    with pytest.raises(DatabaseError, match=r"file is not a database.*correct CDC_SIMULATOR_DATABASE"):
        Database(database_path)
    assert database_path.read_text().startswith("not a database")


def test_a_database_of_something_else_is_refused(database_path: Path, parameters: DatabaseParameters) -> None:
    database_path.parent.mkdir()
    with closing(sqlite3.connect(database_path)) as other:
        other.execute("CREATE TABLE invoices (number INTEGER)")
    with (
        closing(Database(database_path)) as database,
        pytest.raises(DatabaseError, match="not a simulator's database of format 2"),
    ):
        create(database, parameters)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatabaseError, match=r"cannot be opened: .*correct CDC_SIMULATOR_DATABASE"):
        Database(tmp_path / "file" / "orders.sqlite3")


def test_an_error_of_sqlite_in_a_transaction_undoes_it_and_names_the_file(
    database_path: Path, parameters: DatabaseParameters
) -> None:
    def delete_everything_and_fail() -> None:
        with database.transaction() as connection:
            connection.execute("DELETE FROM orders")
            connection.execute("DELETE FROM absent")

    with closing(Database(database_path)) as database:
        create(database, parameters)
        with pytest.raises(DatabaseError, match=f"the database {database_path} fails: no such table: absent"):
            delete_everything_and_fail()

        assert database.query("SELECT count(*) FROM orders") == [(50,)]


def test_a_row_that_breaks_the_rules_of_the_table_is_refused(
    database_path: Path, parameters: DatabaseParameters
) -> None:
    with closing(Database(database_path)) as database:
        create(database, parameters)
        for statement in ("UPDATE orders SET status = 'lost'", "UPDATE orders SET items = '[]'"):
            with pytest.raises(DatabaseError, match="CHECK constraint failed"), database.transaction() as connection:
                connection.execute(statement)
