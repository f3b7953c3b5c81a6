"""Writes pages of rows in JSON, a few rows at a time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ws_edge.codec.bodies import View, json_body, json_bytes, json_error
from ws_edge.errors import UnreadableRowError
from ws_edge.model.states import KeyState, Position
from ws_edge.watches.subscription import RowNews

ROWS_AT_ONCE = 20
"""How many rows are written before sockets get their turn: about 1 ms."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """The content of a Page."""

    rows: Sequence[KeyState]
    fields: tuple[str, ...]
    """The fields to show; empty for all."""
    next_page_token: str
    lag_ms: int
    token: str = ""
    names_group: bool = False
    position: Position | None = None
    """As of which a group was read; None for a page of all groups."""
    through: Position | None = None
    """Up to where the replica that answered has read the partition of the group; None as above."""


async def page_body(page: RowPage) -> bytes:
    """Returns a Page in JSON. Each row is written once, and other tasks get their turns meanwhile."""
    rows = list[bytes]()
    for first in range(0, len(page.rows), ROWS_AT_ONCE):
        rows += [_row_body(state, page) for state in page.rows[first : first + ROWS_AT_ONCE]]
        await asyncio.sleep(0)
    lag = {"lag_s": -(-page.lag_ms // 1000)} if page.lag_ms else {}
    token = {"token": page.token} if page.token else {}
    more = {"next_page_token": page.next_page_token, **lag, **token}
    return b'{"rows":[%b],%b' % (b",".join(rows), json_bytes(more)[1:])


def _row_body(state: KeyState, page: RowPage) -> bytes:
    """Returns a Row in JSON; with the error if it cannot be shown."""
    try:
        state.check_readable()
        body = json_body(RowNews(state), View(page.fields)) or b""
    except UnreadableRowError as error:
        body = json_error(state.key, error)
    return b'{"group":%b,%b' % (json_bytes(state.key.group), body[1:]) if page.names_group else body
