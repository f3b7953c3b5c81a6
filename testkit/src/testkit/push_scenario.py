"""The scenario that every push client must pass, in any language."""

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
    """The changes and rows that one watch has received so far, and how it went on."""

    changes: list[tuple[str, str]] = field(default_factory=list)
    """The key of each row that came, or left, and its status; empty for one that left."""
    rows: dict[str, str] = field(default_factory=dict)
    """The statuses of the rows by their keys, as of the last token."""
    resumed: bool | None = None
    current: bool = False
    refused: str | None = None
    reason: str = ""

    @property
    def statuses(self) -> list[str]:
        """The statuses in the order in which they came."""
        return [status for _, status in self.changes if status]


class ClientCredentials:
    """Returns headers when a client asks for them, and records each need in `needs`.

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
    """A client under test, connected to one address. Watches are named by the scenario."""

    async def watch(self, name: str, store: str, group: str) -> None:
        """Watches a group at the shortest interval, and keeps the received rows under the name."""

    async def unwatch(self, name: str) -> None:
        """Ends the watch."""

    async def received(self, name: str) -> Received:
        """Returns the changes and rows that the watch has received."""


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
    await client.watch(MINE, "orders-by-key", orders.own_order)
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed"] and received.resumed is False)

    await orders.advance("Paid")
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed", "Paid"])

    await orders.cut()
    await orders.advance("Packed")
    await wait_received(client, MINE, lambda received: received.resumed is True and received.statuses[2:] == ["Packed"])

    await orders.advance("Shipped")
    received = await wait_received(client, MINE, lambda received: received.statuses[3:] == ["Shipped"])

    await client.watch(ALL_MINE, "orders-by-customer", orders.consumer)
    await wait_received(
        client, ALL_MINE, lambda received: received.current and received.rows.get(orders.own_order) == "Shipped"
    )
    await orders.cut()
    await client.unwatch(MINE)
    await orders.advance("Delivered")
    await wait_received(
        client,
        ALL_MINE,
        lambda received: received.resumed is True and received.rows.get(orders.own_order) == "Delivered",
    )
    await client.unwatch(ALL_MINE)
    await client.watch(UNWATCHED, "orders-by-key", orders.own_order)
    await wait_received(client, UNWATCHED, lambda received: received.statuses[-1:] == ["Delivered"])

    assert (await client.received(MINE)).statuses == received.statuses, "a change after the end"

    await client.watch(ALL_OF_OTHERS, "orders-by-customer", orders.other_consumer)
    await wait_received(client, ALL_OF_OTHERS, lambda received: received.refused == "forbidden")
    await client.watch(NOWHERE, "no-such-store", orders.own_order)
    await wait_received(client, NOWHERE, lambda received: received.refused == "unknown_store")
    await client.watch(SOMEBODY_ELSES, "orders-by-key", orders.foreign_order)
    await wait_received(client, SOMEBODY_ELSES, lambda received: received.current or received.refused is not None)

    assert not (await client.received(SOMEBODY_ELSES)).rows, "an order of somebody else"


async def play_expiry(client: ScenarioClient, orders: ScenarioOrders, needs: Sequence[str]) -> None:
    """Plays how access ends. `needs` are those of the client's `ClientCredentials`; its order is already placed."""
    await client.watch(MINE, "orders-by-key", orders.own_order)
    await wait_received(client, MINE, lambda received: received.statuses == ["Placed"])
    await wait_received(client, MINE, lambda _: needs[:2] == ["connect", "expiring"])
    await orders.advance("Paid")
    await wait_received(client, MINE, lambda received: received.statuses[1:] == ["Paid"] and received.resumed is False)

    await wait_received(client, MINE, lambda received: received.resumed is True)

    assert needs[-1] == "expired"

    await orders.advance("Packed")
    received = await wait_received(client, MINE, lambda received: received.statuses[2:] == ["Packed"])

    assert needs.count("connect") == needs.count("expired") == 1, "the first renewal needed no new connection"
    assert received.refused is None


async def wait_received(client: ScenarioClient, name: str, condition: Callable[[Received], bool]) -> Received:
    """Waits until the condition holds for the changes received under the name, and returns them."""
    deadline = asyncio.get_running_loop().time() + scaled(TIMEOUT_S)
    while not condition(received := await client.received(name)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} has received {received}"
        await asyncio.sleep(0.02)
    return received
