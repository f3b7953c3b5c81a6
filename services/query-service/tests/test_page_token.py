"""The token between two pages."""

import pytest

from query_service import page_token
from query_service.errors import InvalidRequestError
from statecast.query.v1 import query_service_pb2 as query


def request(token: str = "", group: str = "g", *, reverse: bool = False) -> query.ScanStatesRequest:
    return query.ScanStatesRequest(store="s", group=group, page_token=token, reverse=reverse)


def test_a_token_names_the_last_row() -> None:
    token = page_token.encode(request(), b"g\x001\x00m")

    assert page_token.decode(request(token)) == b"g\x001\x00m"
    assert page_token.decode(request()) is None


@pytest.mark.parametrize("token", ["x", "????", "AAAA", "größe", "MQ=="])
def test_a_token_of_nobody_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequestError, match="page_token: it is not a token"):
        page_token.decode(request(token))


def test_a_token_of_another_request_is_refused() -> None:
    token = page_token.encode(request(), b"g\x001\x00m")

    for other in (request(token, group="h"), request(token, reverse=True)):
        with pytest.raises(InvalidRequestError, match="page_token: it was made for other fields"):
            page_token.decode(other)
