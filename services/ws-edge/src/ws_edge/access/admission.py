"""Decides about each handshake whether there is room for one more socket."""

from collections.abc import Mapping
from typing import Any

from ws_edge.access.gateway import Caller
from ws_edge.access.origins import Origins
from ws_edge.access.pace import Pace
from ws_edge.access.quotas import Quotas, Share
from ws_edge.errors import BusyError


class Admission:
    """Lets sockets in as far as origin, quotas, room and pace allow."""

    def __init__(self, origins: Origins, quotas: Quotas, pace: Pace, max_sockets: int) -> None:
        self._origins = origins
        self._quotas = quotas
        self._pace = pace
        self._max_sockets = max_sockets

    def admit(self, scope: Mapping[str, Any], caller: Caller) -> Share:
        """Returns the part of the quotas that the socket uses while that is entered. Raises HandshakeError."""
        self._origins.check(scope)
        share = self._quotas.share(caller)
        share.check_socket()
        if self._quotas.sockets >= self._max_sockets:
            raise BusyError("this edge has as many sockets as it may have: connect again later", "full")
        # Last, so that those who are refused anyway use up nothing of it.
        if not self._pace.admits():
            raise BusyError("more sockets are being opened than this edge takes at a time: connect again later", "pace")
        return share

    def tidy(self) -> None:
        """Forgets who has left; to be called now and then."""
        self._quotas.forget_idle()
