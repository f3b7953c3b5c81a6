"""The table `open_positions`: its columns, and its rows as the contract has them."""

from cdc_simulator.domain import SourceTable
from cdc_simulator.domains.positions.row import PositionRow
from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange

DEFINITION = """
CREATE TABLE open_positions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    position_id TEXT GENERATED ALWAYS AS (printf('position-%06d', number)) VIRTUAL,
    client TEXT NOT NULL,
    ticker TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    exchange TEXT NOT NULL CHECK (exchange IN ('NASDAQ', 'LON'))
);
"""


def open_position(row: PositionRow) -> OpenPosition:
    """Returns the row as the contract has it."""
    return OpenPosition(
        position_id=row.position_id,
        client=row.client,
        ticker=row.ticker,
        amount=row.amount,
        exchange=row.exchange,
    )


OPEN_POSITIONS = SourceTable(
    name="open_positions",
    topic="open-positions",
    definition=DEFINITION,
    row=PositionRow,
    row_id=lambda row: row.position_id,
    key=lambda row: row.position_id,
    message=open_position,
    change=OpenPositionChange,
)
