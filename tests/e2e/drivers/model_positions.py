"""What the topic of the positions' pipeline must hold, computed from the change log alone."""

from collections.abc import Iterable

from drivers.model_changes import rows_after
from drivers.model_keys import Keyed
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder

EXCHANGE = "NASDAQ"


def us_share_holders(changes: Iterable[OpenPositionChange]) -> Keyed:
    """What each client holds at the exchange; nothing of a client without positions there."""
    holders: Keyed = {}
    for row in rows_after(changes):
        if row.exchange == EXCHANGE:
            holder = holders.setdefault(row.client, ShareHolder(client=row.client))
            holder.positions += 1
            holder.shares += row.amount
    return holders
