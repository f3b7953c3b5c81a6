"""The edge's documented errors: the table in its README is generated from the same classes."""

from collections.abc import Iterator

from ws_edge import errors
from ws_edge.errors import EdgeError, HandshakeError, RequestError

WEBSOCKET_CODES = frozenset({1000, 1002, 1003, 1007})
"""The close codes after a breach of the protocol; the edge's README: the close code says how."""


def named(kind: type[EdgeError]) -> Iterator[type[EdgeError]]:
    """Yields the errors below one that have a code of their own."""
    for each in kind.__subclasses__():
        yield from named(each)
        if each.code != EdgeError.code:
            yield each


REQUEST_CODES = frozenset(error.code for error in named(RequestError))
CLOSE_CODES = WEBSOCKET_CODES | errors.BY_EDGE.keys()
STATUSES = frozenset((error.http_status, error.code) for error in (*named(RequestError), *named(HandshakeError)))
"""The status and the code of every call that the edge refuses itself."""
