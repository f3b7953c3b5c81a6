"""Open positions as the contract has them."""

from cdc_simulator.domains.positions.row import PositionRow
from cdc_simulator.domains.positions.table import OPEN_POSITIONS, open_position
from statecast.portfolio.v1.open_position_pb2 import OpenPosition

ROW = PositionRow(42, "client7", "AAPL", 15, "NASDAQ")


def test_every_field_of_the_row_is_carried_over() -> None:
    assert open_position(ROW) == OpenPosition(
        position_id="position-000042", client="client7", ticker="AAPL", amount=15, exchange="NASDAQ"
    )


def test_the_key_of_its_changes_is_the_position() -> None:
    assert OPEN_POSITIONS.key(ROW) == OPEN_POSITIONS.row_id(ROW) == "position-000042"
