"""Every error has its own stable code, and the tree in the docstring is right."""

from ws_edge import errors
from ws_edge.errors import EdgeError, HandshakeError, RequestError


def leaves(base: type[EdgeError]) -> list[type[EdgeError]]:
    subclasses = [error for error in base.__subclasses__() if error.__module__ == errors.__name__]
    return [leaf for error in subclasses for leaf in leaves(error)] if subclasses else [base]


def test_every_error_that_clients_get_has_its_own_code() -> None:
    client_errors = leaves(RequestError) + leaves(HandshakeError)
    codes = [error.code for error in client_errors]

    assert len(set(codes)) == len(codes)
    assert "internal" not in codes
    assert EdgeError.code == "internal"


def test_the_docstring_names_every_error_with_its_code_and_status() -> None:
    assert errors.__doc__ is not None
    lines = errors.__doc__.splitlines()
    for error in leaves(RequestError) + leaves(HandshakeError):
        (line,) = [line for line in lines if error.__name__ in line]

        assert error.code in line
        assert str(error.http_status) in line
