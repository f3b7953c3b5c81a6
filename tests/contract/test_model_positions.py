"""The model of the positions' pipeline, on a history made by hand."""

from drivers.model_history import History
from drivers.model_positions import us_share_holders

from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder


def position(position_id: str, client: str, amount: int, exchange: str) -> OpenPosition:
    return OpenPosition(position_id=position_id, client=client, amount=amount, exchange=exchange)


def test_only_positions_at_nasdaq_count_for_whom_they_belong_to_in_the_end() -> None:
    history = History(OpenPositionChange, "open_positions")
    history.snapshot(position("p1", "ann", 10, "NASDAQ"))
    history.create(position("p2", "ann", 5, "LON"))
    history.create(position("p3", "ben", 7, "NASDAQ"))
    history.create(position("p4", "cid", 9, "NASDAQ"))
    history.create(position("p5", "dee", 1, "NASDAQ"))
    history.update("p1", amount=12)
    history.update("p2", exchange="NASDAQ")
    history.update("p3", client="ann")
    history.update("p4", exchange="LON")
    history.delete("p5")

    assert us_share_holders(history.changes) == {"ann": ShareHolder(client="ann", positions=3, shares=24)}
