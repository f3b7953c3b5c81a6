"""A row of the table `open_positions`."""

from typing import NamedTuple


class PositionRow(NamedTuple):
    """One row; `amount` is in shares, `number` is the primary key."""

    number: int
    client: str
    ticker: str
    amount: int
    exchange: str

    @property
    def position_id(self) -> str:
        """The position's id as the rest of the world knows it, for example `position-000042`."""
        return f"position-{self.number:06d}"
