"""Errors that end a process."""

from statecast_service.errors import ServiceError


def test_the_text_is_one_line_whatever_it_quotes() -> None:
    error = ServiceError("the key a\r\nb\u2028c is not known:\n  remove it")

    assert str(error) == "the key a b c is not known: remove it"
