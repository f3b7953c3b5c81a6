"""The broker: open positions, which grow, shrink, are transferred and are closed."""

from typing import NamedTuple

from cdc_simulator.domain import Domain, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another, another_number, delete, number_at_end
from cdc_simulator.source_table import SourceTable
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange

TICKERS = {
    "NASDAQ": ("AAPL", "AMZN", "CSCO", "GOOG", "INTC", "MSFT", "NFLX", "NVDA", "TSLA"),
    "LON": ("AZN", "BARC", "BP", "GSK", "HSBA", "RIO", "SHEL", "ULVR", "VOD"),
}
EXCHANGES = tuple(TICKERS)
MAX_AMOUNT = 1000


class PositionRow(NamedTuple):
    """One row; `amount` is in shares, `number` is the primary key."""

    number: int
    client: str
    ticker: str
    amount: int
    exchange: str

    @property
    def position_id(self) -> str:
        return f"position-{self.number:06d}"


OPEN_POSITIONS = SourceTable(
    "open_positions",
    PositionRow,
    OpenPositionChange,
    virtual={"position_id": "printf('position-%06d', number)"},
    checks=("amount > 0", "exchange IN ('NASDAQ', 'LON')"),
)


def create_position(number: int, context: StepContext) -> PositionRow:
    random, parameters, _ = context
    exchange = random.choice(EXCHANGES)
    client = _client(1 + random.randrange(parameters.customers))
    return PositionRow(number, client, random.choice(TICKERS[exchange]), 1 + random.randrange(MAX_AMOUNT), exchange)


def _trade(row: PositionRow, context: StepContext) -> PositionRow:
    return row._replace(amount=another_number(MAX_AMOUNT, row.amount, context.random))


def _correct_ticker(row: PositionRow, context: StepContext) -> PositionRow:
    return row._replace(ticker=another(TICKERS[row.exchange], row.ticker, context.random))


def _correct_exchange(row: PositionRow, context: StepContext) -> PositionRow:
    exchange = another(EXCHANGES, row.exchange, context.random)
    return row._replace(exchange=exchange, ticker=context.random.choice(TICKERS[exchange]))


def _transfer(row: PositionRow, context: StepContext) -> PositionRow:
    present = number_at_end(row.client)
    return row._replace(client=_client(another_number(context.parameters.customers, present, context.random)))


def _client(number: int) -> str:
    return f"client{number}"


POSITION_LIFE_CYCLE = RowLifeCycle(
    "open_positions",
    create_position,
    (Step(55, _trade), Step(8, _correct_ticker), Step(12, _correct_exchange), Step(13, _transfer), Step(12, delete)),
    creation_share=0.1,
)

DOMAIN = Domain("positions", (OPEN_POSITIONS,), POSITION_LIFE_CYCLE.initial_rows, POSITION_LIFE_CYCLE.next_mutation)
