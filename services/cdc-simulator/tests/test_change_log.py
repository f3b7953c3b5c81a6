"""The change log."""

from contextlib import closing
from pathlib import Path

from cdc_simulator.change_log import ChangeLog
from cdc_simulator.database import Database, create_if_new
from cdc_simulator.domain import DatabaseParameters, Domain

NOW_US = 1_724_848_496_123_456


def test_it_is_read_in_order_from_any_place(
    database_path: Path, orders: Domain, parameters: DatabaseParameters
) -> None:
    with closing(Database(database_path)) as database:
        create_if_new(database, orders, parameters, NOW_US)
        log = ChangeLog(database, orders)

        assert [change.lsn for change in log.read(0, 3)] == [1, 2, 3]
        assert [change.lsn for change in log.read(48, 3)] == [49, 50]
        assert log.read(50, 3) == []


def test_what_is_acknowledged_is_forgotten_and_the_cursor_stays(
    database_path: Path, orders: Domain, parameters: DatabaseParameters
) -> None:
    with closing(Database(database_path)) as database:
        create_if_new(database, orders, parameters, NOW_US)
        log = ChangeLog(database, orders)
        before = log.acknowledged_lsn
        log.acknowledge(20)
    with closing(Database(database_path)) as database:
        again = ChangeLog(database, orders)

        assert (before, log.acknowledged_lsn, again.acknowledged_lsn) == (0, 20, 20)
        assert again.read(0, 1)[0].lsn == 21
        assert again.snapshot_lsn == 50
