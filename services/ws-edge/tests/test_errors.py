"""Every error has its own stable word, and the tree in the docstring is true."""

from ws_edge import errors
from ws_edge.errors import EdgeError, HandshakeError, RequestError, SettingsError


def leaves(base: type[EdgeError]) -> list[type[EdgeError]]:
    subclasses = [each for each in base.__subclasses__() if each.__module__ == errors.__name__]
    return [leaf for each in subclasses for leaf in leaves(each)] if subclasses else [base]


def test_every_error_that_a_client_is_told_has_its_own_word() -> None:
    told = leaves(RequestError) + leaves(HandshakeError)
    words = [error.code for error in told]

    assert len(set(words)) == len(words)
    assert "internal" not in words
    assert SettingsError.code == "internal"


def test_the_docstring_names_every_error_with_its_word_and_status() -> None:
    assert errors.__doc__ is not None
    lines = errors.__doc__.splitlines()
    for error in leaves(RequestError) + leaves(HandshakeError):
        (line,) = [line for line in lines if error.__name__ in line]

        assert error.code in line
        assert str(error.http_status) in line
