"""A wrong name gets the valid one that was probably meant."""

from statecast_service.nearest import nearest, suggest


def test_the_nearest_name_is_suggested() -> None:
    assert suggest("ordres", ["orders", "odds"]) == "did you mean orders?"


def test_all_names_are_listed_when_none_is_near() -> None:
    assert suggest("x", ["orders", "odds"]) == "one of: odds, orders"
    assert suggest("x", []) == "one of: none"


def test_a_name_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("x" * 10_000_000, ["orders"] * 100) is None
