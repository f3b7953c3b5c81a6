"""The hint at the end of an error."""

from stream_processor.definition.nearest import hint


def test_the_nearest_name_is_given() -> None:
    assert hint("custmer_id", ["order_id", "customer_id"]) == "did you mean customer_id?"


def test_all_names_are_given_when_none_is_near() -> None:
    assert hint("xyz", ["b", "a"]) == "one of: a, b"
