"""The connections to the instances, and which of them failed lately."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import grpc

from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

_BACKOFF_S = 1.0
_OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)


class Channels:
    """One connection per address, made at the first call."""

    def __init__(self, credentials: grpc.ChannelCredentials | None, monotonic: Callable[[], float]) -> None:
        """Connects in plain text without credentials."""
        self._credentials = credentials
        self._monotonic = monotonic
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._failed_until: dict[str, float] = {}

    def stub(self, address: str) -> "QueryServiceAsyncStub":
        """Returns the calls of an address."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._connected(address)
        return QueryServiceStub(channel)

    def failed(self, address: str) -> None:
        """Notes that an address did not answer: it is chosen last for a second."""
        self._failed_until[address] = self._monotonic() + _BACKOFF_S

    def choose(self, candidates: Iterable[str], tried: str | None) -> str:
        """Returns the first candidate that has neither been tried nor failed lately, else one that was not tried."""
        now = self._monotonic()
        rest = [address for address in candidates if address != tried]
        fresh = (address for address in rest if self._failed_until.get(address, 0.0) <= now)
        return next(fresh, rest[0] if rest else tried or "")

    async def close(self) -> None:
        """Closes all connections."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def _connected(self, address: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=_OPTIONS)
        return grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)
