"""Matches and markets as the contract has them."""

import pytest

from cdc_simulator.domains.odds.rows import MarketRow, MatchRow, Outcome, Status
from cdc_simulator.domains.odds.tables import MARKETS, MATCHES, STATUSES, market, match
from cdc_simulator.table_columns import TableColumns
from statecast.odds.v1.match_pb2 import MatchStatus

MATCH = MatchRow(42, "football", "Cork", "Lund", Status.IN_PLAY, 1_000_001)
MARKET = MarketRow(42 * 8 + 3, "goals", (Outcome("over", 1900), Outcome("under", 2100)), True, 2_000_002)


def test_every_field_of_a_match_is_carried_over() -> None:
    message = match(MATCH)

    assert (message.match_id, message.sport, message.home, message.away) == ("match-000042", "football", "Cork", "Lund")
    assert message.status == MatchStatus.MATCH_STATUS_IN_PLAY
    assert message.starts_at.ToMicroseconds() == 1_000_001


def test_every_field_of_a_market_is_carried_over() -> None:
    message = market(MARKET)

    assert (message.market_id, message.match_id, message.name) == ("market-000042-3", "match-000042", "goals")
    assert [(each.name, each.odds_thousandths) for each in message.outcomes] == [("over", 1900), ("under", 2100)]
    assert message.suspended
    assert message.updated_at.ToMicroseconds() == 2_000_002


def test_rows_come_back_from_their_columns() -> None:
    for table, row in ((MATCHES, MATCH), (MARKETS, MARKET)):
        columns = TableColumns(table)

        assert columns.row_of_columns(columns.insert_values(row)) == row


@pytest.mark.parametrize("name", list(MatchStatus.keys()))
def test_every_status_of_the_contract_is_known(name: str) -> None:
    assert (MatchStatus.Value(name) in STATUSES.values()) == (name != "MATCH_STATUS_UNSPECIFIED")
