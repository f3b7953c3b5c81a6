"""Matches and their markets: a writer of their keyed topics, and the board that a client sees."""

import asyncio
import itertools
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from confluent_kafka import Producer
from google.protobuf.message import Message

from drivers.order_source import PRODUCER_SETTINGS
from drivers.topic_readers import TOMBSTONE_HEADER
from statecast.odds.v1.market_pb2 import Market
from statecast.odds.v1.match_pb2 import Match
from statecast.partitioning import partition_of
from statecast.state.v1.state_pb2 import StateRecord
from statecast_client.push import PushClient, Step
from testkit.query_cluster import PARTITIONS
from testkit.waiting import scaled

MATCHES, ODDS = "matches-about-to-start", "odds-by-match"
MESSAGES: Mapping[str, str] = {MATCHES: "statecast.odds.v1.Match", ODDS: "statecast.odds.v1.Market"}
FLUSH_S = 60
MARKETS: dict[str, Any] = {"store": ODDS, "group_field": "match_id", "limit": 20}


def matches_of(sport: str) -> dict[str, Any]:
    """Returns the range of the matches of a sport that are about to start."""
    return {"store": MATCHES, "group": sport, "limit": 50}


class OddsWriter:
    """Writes the records of one sport in place of the odds pipelines. Returns when Kafka has acknowledged them."""

    def __init__(self, bootstrap: str, sport: str) -> None:
        self.sport = sport
        self._producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER_SETTINGS})
        self._sequence = itertools.count(1)

    def put_match(self, match_id: str) -> None:
        """Writes a match that is about to start."""
        self._write(MATCHES, (self.sport, match_id, match_id), Match(match_id=match_id, sport=self.sport))

    def remove_match(self, match_id: str) -> None:
        """Removes the match, which has started."""
        self._write(MATCHES, (self.sport, match_id, match_id), None)

    def put_market(self, match_id: str, market_id: str, name: str = "match winner") -> None:
        """Writes a new or changed market of a match."""
        row = Market(market_id=market_id, match_id=match_id, name=name)
        self._write(ODDS, (match_id, market_id, market_id), row)

    def _write(self, topic: str, key: tuple[str, ...], row: Message | None) -> None:
        payload = b"" if row is None else row.SerializeToString()
        record = StateRecord(epoch=1, sequence=next(self._sequence), payload=payload)
        record.source.commit_time.FromNanoseconds(time.time_ns())
        encoded, name = record.SerializeToString(), "\0".join(key).encode()
        headers: list[tuple[str, str | bytes | None]] = [(TOMBSTONE_HEADER, encoded)] if row is None else []
        partition = partition_of(key[0], PARTITIONS)  # that of the group
        self._producer.produce(topic, None if row is None else encoded, name, partition, headers=headers)

        assert not self._producer.flush(scaled(FLUSH_S))


class Board:
    """One client that watches the query, as a page would."""

    def __init__(self, address: str, headers: Mapping[str, str], sport: str) -> None:
        self._sport = sport
        self.snapshots = 0
        """How often all rows of the first range have come."""
        self._client = PushClient(f"ws://{address}/v1/stream", credentials=headers)

    @property
    def names(self) -> dict[str, str]:
        """The names of the rows by their paths; matches have none."""
        return {
            "/".join((*path, key)): row.value.get("name", "")
            for path, place in self._watch.places.items()
            for key, row in place.rows.items()
        }

    @property
    def rows(self) -> set[str]:
        """The paths of all rows."""
        return set(self.names)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        self._watch = self._client.watch(**matches_of(self._sport), steps=[Step(**MARKETS)], interval_ms=0)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self._client.__aexit__()

    async def until(self, *rows: str) -> None:
        """Waits until it shows these rows and no others."""
        deadline = time.monotonic() + scaled(60)
        while self.rows != set(rows):
            assert time.monotonic() < deadline, f"it shows {sorted(self.rows)}"
            await asyncio.sleep(0.02)

    async def until_named(self, row: str, name: str) -> None:
        """Waits until it shows a market by this name."""
        deadline = time.monotonic() + scaled(60)
        while self.names.get(row) != name:
            assert time.monotonic() < deadline, f"{row} is {self.names.get(row)}"
            await asyncio.sleep(0.02)

    async def _read(self) -> None:
        async for change in self._watch:
            self.snapshots += change.current and self._watch.resumed is False
