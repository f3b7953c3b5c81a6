"""The command `ws-edge revoke CONSUMER`: ends a consumer's access at every edge, or lifts that again."""

import asyncio
import sys

from ws_edge.errors import RequestError
from ws_edge.settings import Settings
from ws_edge.shared.kafka_writer import KafkaWriter
from ws_edge.shared.revocation_log import RevocationLog


def revoke(given: Settings, principal: str, *, lift: bool) -> int:
    """Returns 0 when Kafka has it, 1 when it has not been taken; one line on standard error says why."""
    log = RevocationLog(writer_of(given))
    try:
        asyncio.run(log.lift(principal) if lift else _revoke(log, principal))
    except RequestError as error:
        sys.stderr.write(f"ws-edge: {error}\n")
        return 1
    return 0


def writer_of(given: Settings) -> KafkaWriter | None:
    """The writer that the settings ask for; None when they name no Kafka."""
    return KafkaWriter(given.kafka_bootstrap, given.kafka_timeout_ms / 1000) if given.kafka_bootstrap else None


async def _revoke(log: RevocationLog, principal: str) -> None:
    await log.revoke(principal)
