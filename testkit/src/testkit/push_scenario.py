"""The scenario that every push client must pass, in whatever language it is written."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from testkit.waiting import scaled

TIMEOUT_S = 30.0
MINE, UNWATCHED, SOMEBODY_ELSES, NOWHERE = "mine", "unwatched", "somebody-else's", "nowhere"
ALL_MINE, ALL_OF_OTHERS = "all-mine", "all-of-others"


@dataclass
class Received:
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
class ReceivedRange:
    """What the watching of a range has brought so far: the change, the member and its status, and how it went on."""

    changes: list[tuple[str, str, str]] = field(default_factory=list)
    recovered: bool | None = None
    refused: str | None = None
    members: int | None = None
    """How many members the last snapshot has; they enter one by one."""

    @property
    def is_whole(self) -> bool:
        """Whether the snapshot has been received, so that a resumption needs no other."""
        return self.members is not None and len(self.changes) >= self.members


class ClientCredentials:
    """Returns headers when a client asks for them, and records what it asked for in `needs`.

    `issue` makes credentials that are valid for a number of seconds. The first ones are valid for `short_s` and can be
    renewed once before they expire; after that none are issued until they have expired, and the next ones are valid
    for `long_s`.
    """

    def __init__(self, issue: Callable[[float], Mapping[str, str]], short_s: float, long_s: float) -> None:
        self._issue, self._short_s, self._long_s = issue, short_s, long_s
        self.needs: list[str] = []

    def __call__(self, need: str) -> Mapping[str, str]:
        """Returns headers for a need. Raises RuntimeError when there are none."""
        self.needs.append(need)
        if need == "expiring" and self.needs.count(need) > 1:
            raise RuntimeError("nobody is there to sign in")
        return self._issue(self._long_s if need == "expired" else self._short_s)


class ScenarioClient(Protocol):
    """A client under test, connected to one address. Subscriptions are named by the scenario."""

    async def subscribe(self, name: str, store: str, group: str) -> None:
        """Watches a key at the shortest interval, and keeps what is received under the name."""

    async def watch_range(self, name: str, store: str, group: str) -> None:
        """Watches the last members of a group, else as `subscribe`."""

    async def unsubscribe(self, name: str) -> None:
        """Ends the subscription, and returns when the client has said so to the server."""

    async def received(self, name: str) -> Received:
        """What the subscription to a key has brought."""

    async def received_range(self, name: str) -> ReceivedRange:
        """What the subscription to a range has brought."""


class ScenarioOrders(Protocol):
    """Two orders, one of the consumer under test, their customers, and the way of the connection."""

    own_order: str
    foreign_order: str
    consumer: str
    other_consumer: str

    async def advance(self, status: str) -> None:
        """Gives the consumer's order another status: `Paid`, `Packed`, `Shipped`, `Delivered`."""

    async def cut(self) -> None:
        """Cuts the connection; new ones are possible."""


async def play(client: ScenarioClient, orders: ScenarioOrders) -> None:
    """Plays the scenario: the order is placed when it begins."""
    await client.subscribe(MINE, "orders-by-key", orders.own_order)
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed"] and received.recovered is False)

    await orders.advance("Paid")
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed", "Paid"])

    await orders.cut()
    await orders.advance("Packed")
    await wait_received(
        client, MINE, lambda received: received.recovered is True and received.statuses[2:] == ["Packed"]
    )

    await orders.advance("Shipped")
    received = await wait_received(client, MINE, lambda received: received.statuses[3:] == ["Shipped"])
    offsets = [offset for offset, _ in received.updates]

    assert offsets == sorted(set(offsets)), "a repeat, or a step back"

    await client.watch_range(ALL_MINE, "orders-by-customer", orders.consumer)
    entered = ("entered", orders.own_order, "Shipped")
    await _wait_range(client, ALL_MINE, lambda received: entered in received.changes and received.is_whole)
    await orders.cut()
    await client.unsubscribe(MINE)
    await orders.advance("Delivered")
    delivered = ("changed", orders.own_order, "Delivered")
    await _wait_range(client, ALL_MINE, lambda received: delivered in received.changes and received.recovered is True)
    await client.unsubscribe(ALL_MINE)
    await client.subscribe(UNWATCHED, "orders-by-key", orders.own_order)
    await wait_received(client, UNWATCHED, lambda received: received.statuses[-1:] == ["Delivered"])

    assert (await client.received(MINE)).statuses == received.statuses, "an update after the end"

    await client.subscribe(SOMEBODY_ELSES, "orders-by-key", orders.foreign_order)
    await wait_received(client, SOMEBODY_ELSES, lambda received: received.refused == "forbidden")
    await client.watch_range(ALL_OF_OTHERS, "orders-by-customer", orders.other_consumer)
    await _wait_range(client, ALL_OF_OTHERS, lambda received: received.refused == "forbidden")
    await client.subscribe(NOWHERE, "no-such-store", orders.own_order)
    await wait_received(client, NOWHERE, lambda received: received.refused == "unknown_store")


async def play_expiry(client: ScenarioClient, orders: ScenarioOrders, needs: Sequence[str]) -> None:
    """Plays how access ends, with a `ClientCredentials` whose `needs` these are: the order is placed when it begins."""
    await client.subscribe(MINE, "orders-by-key", orders.own_order)
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed"])
    await wait_received(client, MINE, lambda _: needs[:2] == ["connect", "expiring"])
    await orders.advance("Paid")
    await wait_received(
        client, MINE, lambda received: received.statuses[1:] == ["Paid"] and received.recovered is False
    )

    await wait_received(client, MINE, lambda received: received.recovered is True)

    assert needs[-1] == "expired"

    await orders.advance("Packed")
    received = await wait_received(client, MINE, lambda received: received.statuses[2:] == ["Packed"])

    assert needs.count("connect") == needs.count("expired") == 1, "the first renewal needed no new connection"
    assert received.refused is None


async def wait_received(client: ScenarioClient, name: str, condition: Callable[[Received], bool]) -> Received:
    """Waits until what was received under the name is so, and returns it."""
    deadline = asyncio.get_running_loop().time() + scaled(TIMEOUT_S)
    while not condition(received := await client.received(name)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} has received {received}"
        await asyncio.sleep(0.02)
    return received


async def _wait_range(client: ScenarioClient, name: str, condition: Callable[[ReceivedRange], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + scaled(TIMEOUT_S)
    while not condition(received := await client.received_range(name)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} has received {received}"
        await asyncio.sleep(0.02)
