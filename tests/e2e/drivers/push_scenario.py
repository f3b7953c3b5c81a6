"""What every client of the live connection must do, whatever it is written in."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from drivers.waiting import scaled

PATIENCE_S = 30.0
MINE, UNWATCHED, SOMEBODY_ELSES, NOWHERE = "mine", "unwatched", "somebody-else's", "nowhere"
ALL_MINE, ALL_OF_OTHERS = "all-mine", "all-of-others"


@dataclass
class Heard:
    """What one subscription has brought so far: the offset and the status of each update, and how it went on."""

    updates: list[tuple[int, str]] = field(default_factory=list)
    recovered: bool | None = None
    refused: str | None = None
    reason: str = ""

    @property
    def statuses(self) -> list[str]:
        """The statuses in the order in which they came; not that the order was unknown at first."""
        return [status for _, status in self.updates if status]


@dataclass
class HeardRange:
    """What the watching of a range has brought so far: the change, the member and its status, and how it went on."""

    changes: list[tuple[str, str, str]] = field(default_factory=list)
    recovered: bool | None = None
    refused: str | None = None


class PushParticipant(Protocol):
    """A client under test, connected to one address. Subscriptions are named by the scenario."""

    async def subscribe(self, name: str, store: str, group: str) -> None:
        """Watches a key at the shortest interval, and keeps what is heard under the name."""

    async def watch_range(self, name: str, store: str, group: str) -> None:
        """Watches the last members of a group, else as `subscribe`."""

    async def unsubscribe(self, name: str) -> None:
        """Ends the subscription, and returns when the client has said so to the server."""

    async def heard(self, name: str) -> Heard:
        """What the subscription to a key has brought."""

    async def heard_range(self, name: str) -> HeardRange:
        """What the subscription to a range has brought."""


class OrderWorld(Protocol):
    """Two orders, one of the consumer under test, their customers, and the way of the connection."""

    mine: str
    foreign: str
    me: str
    somebody_else: str

    async def advance(self, status: str) -> None:
        """Gives the consumer's order another status: `Paid`, `Packed`, `Shipped`, `Delivered`."""

    async def cut(self) -> None:
        """Cuts the connection; new ones are possible."""


async def play(client: PushParticipant, world: OrderWorld) -> None:
    """Plays the scenario: the order is placed when it begins."""
    await client.subscribe(MINE, "orders-by-key", world.mine)
    await until(client, MINE, lambda heard: heard.statuses == ["Placed"] and heard.recovered is False)

    await world.advance("Paid")
    await until(client, MINE, lambda heard: heard.statuses == ["Placed", "Paid"])

    await world.cut()
    await world.advance("Packed")
    await until(client, MINE, lambda heard: heard.recovered is True and heard.statuses[2:] == ["Packed"])

    await world.advance("Shipped")
    heard = await until(client, MINE, lambda heard: heard.statuses[3:] == ["Shipped"])
    offsets = [offset for offset, _ in heard.updates]

    assert offsets == sorted(set(offsets)), "a repeat, or a step back"

    await client.watch_range(ALL_MINE, "orders-by-customer", world.me)
    await _until_range(client, ALL_MINE, lambda heard: ("entered", world.mine, "Shipped") in heard.changes)
    await world.cut()
    await client.unsubscribe(MINE)
    await world.advance("Delivered")
    delivered = ("changed", world.mine, "Delivered")
    await _until_range(client, ALL_MINE, lambda heard: delivered in heard.changes and heard.recovered is True)
    await client.unsubscribe(ALL_MINE)
    await client.subscribe(UNWATCHED, "orders-by-key", world.mine)
    await until(client, UNWATCHED, lambda heard: heard.statuses[-1:] == ["Delivered"])

    assert (await client.heard(MINE)).statuses == heard.statuses, "an update after the end"

    await client.subscribe(SOMEBODY_ELSES, "orders-by-key", world.foreign)
    await until(client, SOMEBODY_ELSES, lambda heard: heard.refused == "forbidden")
    await client.watch_range(ALL_OF_OTHERS, "orders-by-customer", world.somebody_else)
    await _until_range(client, ALL_OF_OTHERS, lambda heard: heard.refused == "forbidden")
    await client.subscribe(NOWHERE, "no-such-store", world.mine)
    await until(client, NOWHERE, lambda heard: heard.refused == "unknown_store")


async def play_expiry(client: PushParticipant, world: OrderWorld, needs: Sequence[str]) -> None:
    """Plays how access ends, with a `Wallet` whose `needs` these are: the order is placed when it begins."""
    await client.subscribe(MINE, "orders-by-key", world.mine)
    await until(client, MINE, lambda heard: heard.statuses == ["Placed"])
    await until(client, MINE, lambda _: needs[:2] == ["connect", "expiring"])
    await world.advance("Paid")
    await until(client, MINE, lambda heard: heard.statuses[1:] == ["Paid"] and heard.recovered is False)

    await until(client, MINE, lambda heard: heard.recovered is True)

    assert needs[-1] == "expired"

    await world.advance("Packed")
    heard = await until(client, MINE, lambda heard: heard.statuses[2:] == ["Packed"])

    assert needs.count("connect") == needs.count("expired") == 1, "the first renewal needed no new connection"
    assert heard.refused is None


async def until(client: PushParticipant, name: str, condition: Callable[[Heard], bool]) -> Heard:
    """Waits until what was heard under the name is so, and returns it."""
    deadline = asyncio.get_running_loop().time() + scaled(PATIENCE_S)
    while not condition(heard := await client.heard(name)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} has heard {heard}"
        await asyncio.sleep(0.02)
    return heard


async def _until_range(client: PushParticipant, name: str, condition: Callable[[HeardRange], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + scaled(PATIENCE_S)
    while not condition(heard := await client.heard_range(name)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} has heard {heard}"
        await asyncio.sleep(0.02)
