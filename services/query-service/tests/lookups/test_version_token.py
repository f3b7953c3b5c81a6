"""The token between two pages of versions."""

import base64

import pytest

from query_service.errors import BadTokenError
from query_service.lookups import version_token
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2


def request(group: str = "g", token: str = "") -> query.ListVersionsRequest:
    return query.ListVersionsRequest(store="s", key=state_pb2.StateKey(group=group), page_token=token)


def test_a_token_survives_the_way_there_and_back() -> None:
    assert version_token.decode(request(token=version_token.encode(request(), 77, 42)), 77) == 42


def test_the_first_page_begins_above_all_offsets() -> None:
    assert version_token.decode(request(), 77) == MAX_OFFSET


@pytest.mark.parametrize("token", ["x", "!!!", base64.urlsafe_b64encode(b"too short").decode(), "größe"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(BadTokenError, match="not a token of this service"):
        version_token.decode(request(token=token), 77)


def test_a_token_of_another_key_or_topic_is_refused() -> None:
    token = version_token.encode(request(), 77, 42)

    with pytest.raises(BadTokenError, match="another key"):
        version_token.decode(request("other", token), 77)
    with pytest.raises(BadTokenError, match="made anew"):
        version_token.decode(request(token=token), 78)
