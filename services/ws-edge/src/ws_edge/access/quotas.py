"""What each consumer and each address uses of this edge over all of its sockets, and how much of it they may."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Self

from ws_edge.access.gateway import Caller
from ws_edge.access.token_bucket import TokenBucket
from ws_edge.errors import FrameFloodError, TooManyFramesError, TooManySocketsError, TooManySubscriptionsError

STRIKES = 100
STRIKES_FORGOTTEN_PER_S = 1.0
"""A socket that has been refused so many frames, less what is forgotten, does not listen: it is closed."""

IPV6_SITE = 64
"""The length of the prefix that one subscriber of IPv6 gets at the least; addresses within it are one to us."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one consumer, or one address, may use."""

    sockets: int
    subscriptions: int
    frames_per_s: int
    burst_s: float
    """So many seconds' worth of frames may come at once."""


class Account:
    """What one consumer, or one address, uses now."""

    __slots__ = ("frames", "quota", "sockets", "subscriptions", "whose")

    def __init__(self, whose: str, quota: Quota, now: float) -> None:
        """`whose` is for people: it says whose account it is."""
        self.whose = whose
        self.quota = quota
        self.sockets = 0
        self.subscriptions = 0
        self.frames = TokenBucket(quota.frames_per_s, quota.frames_per_s * quota.burst_s, now)

    def is_idle(self, now: float) -> bool:
        """Whether a new account would be the same."""
        return not self.sockets and self.frames.is_full(now)


class Quotas:
    """The accounts of all who are here. They are kept until nothing in them counts any more."""

    def __init__(self, consumer: Quota, address: Quota, clock: Callable[[], float]) -> None:
        self._consumer = consumer
        self._address = address
        self._clock = clock
        self._accounts: dict[Hashable, Account] = {}
        self.sockets = 0
        """The sockets of all together."""

    def __len__(self) -> int:
        return len(self._accounts)

    def share(self, caller: Caller) -> "Share":
        """The part of the caller's accounts that a new socket will have."""
        site = site_of(caller.address)
        accounts = (
            self._account(caller.consumer, "this consumer", self._consumer),
            self._account(site, "this address", self._address),
        )
        return Share(self, accounts, self._clock)

    def forget_idle(self) -> None:
        """Drops the accounts that nobody needs; to be called now and then."""
        now = self._clock()
        for key in [key for key, account in self._accounts.items() if account.is_idle(now)]:
            del self._accounts[key]

    def _account(self, key: Hashable, whose: str, quota: Quota) -> Account:
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = Account(whose, quota, self._clock())
        return account


class Share:
    """What one socket uses of the accounts of its consumer and its address; it counts while it is entered."""

    __slots__ = ("_accounts", "_clock", "_quotas", "_strikes", "_subscriptions")

    def __init__(self, quotas: Quotas, accounts: tuple[Account, ...], clock: Callable[[], float]) -> None:
        self._quotas = quotas
        self._accounts = accounts
        self._clock = clock
        self._subscriptions = 0
        self._strikes: TokenBucket | None = None

    def __enter__(self) -> Self:
        self._quotas.sockets += 1
        for account in self._accounts:
            account.sockets += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.hold(0)
        self._quotas.sockets -= 1
        for account in self._accounts:
            account.sockets -= 1

    def check_socket(self) -> None:
        """Raises TooManySocketsError when there may not be one more."""
        for account in self._accounts:
            if account.sockets >= account.quota.sockets:
                text = f"{account.whose} has {account.sockets} sockets here, as many as it may: close some first"
                raise TooManySocketsError(text)

    def check_subscription(self) -> None:
        """Raises TooManySubscriptionsError when there may not be one more."""
        for account in self._accounts:
            if account.subscriptions >= account.quota.subscriptions:
                text = f"{account.whose} has {account.subscriptions} subscriptions here, as many as it may: cancel some"
                raise TooManySubscriptionsError(text)

    def hold(self, subscriptions: int) -> None:
        """Says how many subscriptions the socket has now."""
        for account in self._accounts:
            account.subscriptions += subscriptions - self._subscriptions
        self._subscriptions = subscriptions

    def take_frame(self) -> None:
        """Counts a frame. Raises TooManyFramesError when it is one too many, and FrameFloodError in the end."""
        now = self._clock()
        for account in self._accounts:
            if not account.frames.take(now):
                limit = account.quota.frames_per_s
                text = f"{account.whose} sends more than {limit} frames a second: wait a moment, then send it again"
                raise TooManyFramesError(text) if self._strike(now) else FrameFloodError(text)

    def _strike(self, now: float) -> bool:
        if self._strikes is None:
            self._strikes = TokenBucket(STRIKES_FORGOTTEN_PER_S, STRIKES, now)
        return self._strikes.take(now)


def site_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or the network of an IPv6 one; anything else as it is."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ip_network((int(known), IPV6_SITE), strict=False))
    return str(known)
