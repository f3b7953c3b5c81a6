"""How far the log is acknowledged without a gap."""

from random import Random

from cdc_simulator.acknowledgements import Acknowledgements


def test_a_gap_holds_it_back_until_it_is_filled() -> None:
    acknowledgements = Acknowledgements(10)
    acknowledgements.add(12)
    acknowledgements.add(13)
    before = acknowledgements.lsn
    acknowledgements.add(11)

    assert (before, acknowledgements.lsn) == (10, 13)


def test_any_order_ends_at_the_last() -> None:
    numbers = list(range(1, 1001))
    Random(3).shuffle(numbers)
    acknowledgements = Acknowledgements(0)
    missing = set(numbers)
    for number in numbers:
        acknowledgements.add(number)
        missing.discard(number)

        assert acknowledgements.lsn == min(missing, default=1001) - 1
