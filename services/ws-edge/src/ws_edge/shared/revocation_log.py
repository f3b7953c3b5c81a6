"""Writes down whose access is revoked; every edge acts on it."""

import time
from collections.abc import Callable

from statecast.push.v1.revocation_pb2 import Revocation
from ws_edge.errors import NotConfiguredError
from ws_edge.shared.kafka_writer import Record, Writer
from ws_edge.shared.own_stores import REVOCATIONS, revocation_key


class RevocationLog:
    """Every method raises MalformedFrameError for what cannot be a consumer, UnavailableError when Kafka does not
    take it, and NotConfiguredError when there is no writer."""

    def __init__(self, writer: Writer | None, calendar: Callable[[], float] = time.time) -> None:
        self._writer = writer
        self._calendar = calendar

    async def revoke(self, principal: str) -> Revocation:
        """From now on the consumer's access is revoked. Returns what was written when Kafka has it."""
        revocation = Revocation()
        revocation.revoked_at.FromNanoseconds(round(self._calendar() * 1e9))
        await self._write(principal, revocation.SerializeToString())
        return revocation

    async def lift(self, principal: str) -> None:
        """The consumer has access again; one that was never revoked is left alone."""
        await self._write(principal, None)

    async def _write(self, principal: str, value: bytes | None) -> None:
        if self._writer is None:
            raise NotConfiguredError("revocation is off at this edge: its operators must set WS_EDGE_KAFKA_BOOTSTRAP")
        REVOCATIONS.check_key(revocation_key(principal))
        await self._writer.write(REVOCATIONS.name, principal, [Record(principal.encode(), value)])
