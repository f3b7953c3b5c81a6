"""One change of the log."""

import pytest

from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.order_row import OrderRow


def test_it_knows_what_happened(row: OrderRow) -> None:
    shapes = [(True, None, row), (False, None, row), (False, row, row), (False, row, None)]
    operations = [LoggedChange(1, "tx-1", 0, snapshot, old, new).operation for snapshot, old, new in shapes]

    assert operations == ["snapshot", "create", "update", "delete"]


def test_it_knows_its_order_also_when_the_row_is_gone(row: OrderRow) -> None:
    assert LoggedChange(1, "tx-1", 0, False, row, None).order_id == "order-000042"


def test_a_change_without_a_row_is_damage() -> None:
    with pytest.raises(ValueError, match="change 7 has no row"):
        _ = LoggedChange(7, "tx-1", 0, False, None, None).order_id
