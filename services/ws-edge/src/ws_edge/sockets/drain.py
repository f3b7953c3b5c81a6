"""Sends all clients to other edges before this one ends: tells each when to go, and closes its socket then."""

import asyncio
from collections.abc import Container, Sequence

from ws_edge.errors import CLOSE_RESTART
from ws_edge.sockets.session import Session

REASON = "this edge restarts: connect again with your positions"


async def drain(sessions: Sequence[Session], still_open: Container[Session], notice: float, window: float) -> None:
    """Tells all `sessions` at once, and closes one by one those that are still open.

    The first is closed after `notice` seconds, in which the gateway can notice that this edge is not ready and sends
    nobody back to it; the others follow evenly over `window` seconds.
    """
    leaving = [(session, notice + window * place / len(sessions)) for place, session in enumerate(sessions)]
    for session, delay in leaving:
        session.announce_reconnect(round(delay * 1000))
    loop = asyncio.get_running_loop()
    began = loop.time()
    for session, delay in leaving:
        ahead = began + delay - loop.time()
        if ahead > 0:
            await asyncio.sleep(ahead)
        if session in still_open:
            await _close(session)


async def _close(session: Session) -> None:
    try:
        await session.close(CLOSE_RESTART, REASON)
    except OSError:
        return  # the client was faster
