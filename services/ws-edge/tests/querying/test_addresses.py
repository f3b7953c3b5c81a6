"""An instance that failed is asked last for a while."""

from ws_edge.querying.addresses import Addresses
from ws_edge.testing.edge import Clock


def test_the_first_candidate_is_chosen_and_without_any_a_configured_address() -> None:
    addresses = Addresses(["x"], Clock(), 1.0)

    assert addresses.choose(["a", "b"]) == "a"
    assert addresses.choose([]) == "x"


def test_a_failed_address_is_passed_over_until_the_backoff_is_over() -> None:
    clock = Clock()
    addresses = Addresses(["x"], clock, 1.0)
    addresses.failed("a")

    assert addresses.choose(["a", "b"]) == "b"
    clock.now += 1.0
    assert addresses.choose(["a", "b"]) == "a"


def test_an_answer_ends_the_backoff() -> None:
    addresses = Addresses(["x"], Clock(), 1.0)
    addresses.failed("a")
    addresses.answered("a")

    assert addresses.choose(["a", "b"]) == "a"


def test_when_all_have_failed_the_first_is_tried_again() -> None:
    addresses = Addresses(["x"], Clock(), 1.0)
    for address in ("a", "b", "x"):
        addresses.failed(address)

    assert addresses.choose(["a", "b"]) == "a"


def test_only_the_first_failure_of_an_outage_is_news() -> None:
    addresses = Addresses(["x"], Clock(), 1.0)

    assert [addresses.failed("a"), addresses.failed("a")] == [True, False]
    addresses.answered("a")
    assert addresses.failed("a")
