"""The legal steps in the life of an open position: traded, corrected, transferred, closed; pure."""

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, another, another_number, end, take_step
from cdc_simulator.domains.positions.row import PositionRow
from cdc_simulator.life import Life

TICKERS = {
    "NASDAQ": ("AAPL", "AMZN", "CSCO", "GOOG", "INTC", "MSFT", "NFLX", "NVDA", "TSLA"),
    "LON": ("AZN", "BARC", "BP", "GSK", "HSBA", "RIO", "SHEL", "ULVR", "VOD"),
}
EXCHANGES = tuple(TICKERS)
LARGEST_AMOUNT = 1000
STEADY_CREATION_CHANCE = 0.1


def open_position(number: int, moment: Moment) -> PositionRow:
    """Returns a new position of a random client."""
    random, basis, _ = moment
    exchange = random.choice(EXCHANGES)
    client = _client(1 + random.randrange(basis.customers))
    return PositionRow(number, client, random.choice(TICKERS[exchange]), 1 + random.randrange(LARGEST_AMOUNT), exchange)


def go_on(row: PositionRow, moment: Moment) -> PositionRow | None:
    """Returns the position after one legal step, or absent when it is closed."""
    return take_step(row, STEPS, moment)


def _trade(row: PositionRow, moment: Moment) -> PositionRow:
    return row._replace(amount=another_number(LARGEST_AMOUNT, row.amount, moment.random))


def _correct_ticker(row: PositionRow, moment: Moment) -> PositionRow:
    return row._replace(ticker=another(TICKERS[row.exchange], row.ticker, moment.random))


def _correct_exchange(row: PositionRow, moment: Moment) -> PositionRow:
    exchange = another(EXCHANGES, row.exchange, moment.random)
    return row._replace(exchange=exchange, ticker=moment.random.choice(TICKERS[exchange]))


def _transfer(row: PositionRow, moment: Moment) -> PositionRow:
    present = int(row.client.removeprefix("client"))
    return row._replace(client=_client(another_number(moment.basis.customers, present, moment.random)))


def _client(number: int) -> str:
    return f"client{number}"


STEPS = (Step(55, _trade), Step(8, _correct_ticker), Step(12, _correct_exchange), Step(13, _transfer), Step(12, end))
POSITION_LIFE = Life("open_positions", open_position, go_on, STEADY_CREATION_CHANCE)
