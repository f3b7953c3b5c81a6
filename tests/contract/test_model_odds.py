"""The models of the odds' pipelines, on histories made by hand."""

from drivers.model_history import History
from drivers.model_odds import matches_about_to_start, odds_by_match
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.odds.v1.market_pb2 import Market, MarketChange, Outcome
from statecast.odds.v1.match_pb2 import Match, MatchChange, MatchStatus

START = Timestamp(seconds=1_724_848_496)


def test_the_markets_of_a_match_stand_by_their_names() -> None:
    history = History(MarketChange, "markets")
    history.create(Market(market_id="k1", match_id="m1", name="goals"))
    history.create(Market(market_id="k2", match_id="m1", name="match winner"))
    history.create(Market(market_id="k3", match_id="m2", name="goals"))
    history.update("k1", outcomes=[Outcome(name="over", odds_thousandths=1900)])
    history.delete("k3")
    expected = odds_by_match(history.changes)

    assert set(expected) == {"m1\0goals\0k1", "m1\0match winner\0k2"}
    assert expected["m1\0goals\0k1"].outcomes[0].odds_thousandths == 1900


def test_a_match_stands_among_those_about_to_start_as_long_as_it_is() -> None:
    history = History(MatchChange, "matches")
    for match_id in ("m1", "m2", "m3"):
        history.create(Match(match_id=match_id, status=MatchStatus.MATCH_STATUS_SCHEDULED, starts_at=START))
        history.update(match_id, status=MatchStatus.MATCH_STATUS_ABOUT_TO_START)
    history.update("m1", starts_at=Timestamp(seconds=1_724_848_556))
    history.update("m2", status=MatchStatus.MATCH_STATUS_IN_PLAY)
    history.delete("m3")

    assert set(matches_about_to_start(history.changes)) == {
        "MATCH_STATUS_ABOUT_TO_START\0" + "2024-08-28T12:35:56.000000Z\0m1"
    }
