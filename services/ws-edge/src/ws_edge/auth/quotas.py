"""Quotas: the use of this edge by each consumer and each address over all sockets, and the limits of that use."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_network
from typing import Self

import structlog

from ws_edge.auth.gateway import Caller
from ws_edge.errors import (
    TooManyChannelsError,
    TooManyFieldListsError,
    TooManySocketsError,
    TooManyWatchesError,
)
from ws_edge.model.authorization import Consumer

IPV6_PREFIX_BITS = 64
"""One IPv6 subscriber gets a prefix of at most this length, so all addresses within it count as one."""

HOUR_S = 3600.0

SOCKETS_BURST_S = 20.0
"""So many seconds' worth of sockets may be opened at once."""

MAX_FIELD_LISTS = 8
"""Lists of fields by which a consumer may watch one store: each row is encoded once for each list."""

log = structlog.get_logger(__name__)


class TokenBucket:
    """Holds at most `burst` tokens, starts full, and gains `rate` tokens a second. Times are monotonic seconds.

    It is used in one of two ways: `take` refuses beyond the limit, and `pay` goes into debt and returns its duration.
    """

    __slots__ = ("_refilled_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = self._tokens = burst
        self._refilled_at = now

    def take(self, now: float) -> bool:
        """Takes a token; returns whether there was one."""
        is_taken = self._refilled(now) >= 1
        self._tokens -= is_taken
        return is_taken

    def pay(self, cost: float, now: float) -> float:
        """Takes so many tokens, whether there are as many or not; returns after how many seconds none is owed.

        Those who pay at the same time wait in line: each one's time is behind that of the one before.
        """
        self._tokens = self._refilled(now) - cost
        return max(0.0, -self._tokens / self.rate)

    def is_full(self, now: float) -> bool:
        """Returns whether no token is missing, so that a new bucket would be the same."""
        return self._refilled(now) >= self.burst

    def _refilled(self, now: float) -> float:
        self._tokens = min(self.burst, self._tokens + (now - self._refilled_at) * self.rate)
        self._refilled_at = now
        return self._tokens


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one consumer, or of one address."""

    sockets: int
    rows: int
    """The rows that may be watched, as SessionContext counts them."""
    frames_per_s: int
    """A frame costs one, each of its parts one more (see ClientRequest), and each 1,024 bytes one more."""
    burst_s: float
    """This many seconds' worth may arrive at once."""
    sockets_per_s: float
    """How many sockets may be opened, also those that are dropped at once."""


@dataclass(slots=True, eq=False)
class Account:
    """The present use by one consumer, or by one address. `name` is for error texts."""

    name: str
    quota: Quota
    budget: TokenBucket
    openings: TokenBucket
    sockets: int = 0
    rows: int = 0
    field_lists: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    """How many places there are by store and list of fields; those that ask for all fields are not among them."""
    is_warned: bool = False
    """Whether the log says that it is full."""

    def is_full(self, now: float) -> bool:
        """Returns whether all that may be used at once is there, so that a new account would be the same."""
        return self.budget.is_full(now) and self.openings.is_full(now)


@dataclass(eq=False)
class Quotas:
    """The accounts of all who are connected. An account is kept until nothing in it counts any more."""

    consumer: Quota
    address: Quota
    clock: Callable[[], float]
    accounts: dict[Hashable, Account] = field(default_factory=dict, init=False)
    sockets: int = field(default=0, init=False)
    """Open sockets of all callers."""

    def reserve(self, caller: Caller) -> "QuotaReservation":
        """Returns a reservation in the caller's accounts for a new socket. Raises TooManySocketsError."""
        accounts = (
            self._account(caller.consumer, "this consumer", self.consumer),
            self._account(network_of(caller.address), "this address", self.address),
        )
        for account in accounts:
            if account.sockets >= account.quota.sockets:
                text = f"{account.name} has {account.sockets} sockets here, as many as it may: close some first"
                if account is accounts[1]:
                    self._warn_of_address(caller.address, account)
                raise TooManySocketsError(text)
        for account in accounts:
            if not account.openings.take(self.clock()):
                rate = f"{account.name} opens more than {account.quota.sockets_per_s:g} sockets a second here"
                raise TooManySocketsError(f"{rate}: keep those that you have open")
        return QuotaReservation(self, accounts, self.clock)

    def _warn_of_address(self, address: str, account: Account) -> None:
        """Warns once for each time that the address is connected: it may be a proxy's, behind which all are one."""
        if not account.is_warned:
            account.is_warned = True
            hint = "if it is a proxy or load balancer, add it to the gateway's trusted_ips"
            log.warning("address_full", client=address, sockets=account.sockets, hint=hint)

    def forget_idle(self) -> None:
        """Drops idle accounts, since their successors would be the same. To be called now and then."""
        now = self.clock()
        idle = (key for key, account in self.accounts.items() if not account.sockets and account.is_full(now))
        for key in tuple(idle):
            del self.accounts[key]

    def _account(self, key: Hashable, name: str, quota: Quota) -> Account:
        account = self.accounts.get(key)
        if account is None:
            now = self.clock()
            budget = TokenBucket(quota.frames_per_s, quota.frames_per_s * quota.burst_s, now)
            openings = TokenBucket(quota.sockets_per_s, max(1.0, quota.sockets_per_s * SOCKETS_BURST_S), now)
            account = self.accounts[key] = Account(name, quota, budget, openings)
        return account


@dataclass(slots=True, eq=False)
class QuotaReservation:
    """The use by one socket of the accounts of its consumer and its address. It counts while it is entered."""

    quotas: Quotas
    accounts: tuple[Account, ...]
    clock: Callable[[], float]

    def __enter__(self) -> Self:
        self.quotas.sockets += 1
        for account in self.accounts:
            account.sockets += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.quotas.sockets -= 1
        for account in self.accounts:
            account.sockets -= 1

    def add(self, rows: int, store: str = "", fields: tuple[str, ...] = ()) -> None:
        """Counts a place of so many rows, until `remove`.

        Raises TooManyWatchesError, or TooManyFieldListsError for one more list of fields of the store.
        """
        for account in self.accounts:
            if account.rows + rows > account.quota.rows:
                held, limit = account.rows, account.quota.rows
                text = f"{account.name} watches {held} rows of {limit} here, and this would count {rows}"
                reason = "a place counts its limit, and one more for each read a second beyond the first"
                raise TooManyWatchesError(f"{text}: {reason}")
        lists = self.accounts[0].field_lists
        is_new = bool(fields) and (store, fields) not in lists
        if is_new and sum(other == store for other, _ in lists) >= MAX_FIELD_LISTS:
            text = f"this consumer watches {store} by {MAX_FIELD_LISTS} lists of fields: use one of them, or none"
            raise TooManyFieldListsError(text)
        self._count(rows, store, fields, 1)

    def remove(self, rows: int, store: str = "", fields: tuple[str, ...] = ()) -> None:
        """Gives back the rows of a place that has ended."""
        self._count(rows, store, fields, -1)

    def _count(self, rows: int, store: str, fields: tuple[str, ...], sign: int) -> None:
        for account in self.accounts:
            account.rows += sign * rows
        if fields:
            lists = self.accounts[0].field_lists
            lists[store, fields] += sign
            if not lists[store, fields]:
                del lists[store, fields]

    def pay(self, cost: float) -> float:
        """Takes the cost from both budgets; returns for how many seconds the socket is not to be read on."""
        now = self.clock()
        return max(account.budget.pay(cost, now) for account in self.accounts)

    def pay_in_turn(self, cost: float) -> Iterator[float]:
        """As `pay`, but takes the cost from the second budget when it is asked for a second time to wait.

        The address pays once its consumer owes nothing: one consumer's debt would stop all others behind the address.
        """
        for account in self.accounts:
            yield account.budget.pay(cost, self.clock())


@dataclass
class ChannelQuota:
    """Limits how many channels each consumer creates here, and so how many exist: an hour's worth may come at once."""

    per_hour: int
    clock: Callable[[], float]
    buckets: OrderedDict[str, TokenBucket] = field(default_factory=OrderedDict, init=False)
    """Those that were not full lately, the longest unused first: it is full again after an hour."""

    def take(self, consumer: Consumer) -> None:
        """Counts a channel that is about to be created. Raises TooManyChannelsError when it is one too many."""
        now, buckets = self.clock(), self.buckets
        while buckets and next(iter(buckets.values())).is_full(now):
            buckets.popitem(last=False)
        bucket = buckets.get(consumer.principal)
        if bucket is None:
            bucket = buckets[consumer.principal] = TokenBucket(self.per_hour / HOUR_S, self.per_hour, now)
        buckets.move_to_end(consumer.principal)
        if not bucket.take(now):
            text = f"this consumer creates more than {self.per_hour} channels an hour: use those that there are"
            raise TooManyChannelsError(text)


def network_of(address: str) -> str:
    """Returns the network that counts as one address: an IPv4 address or an IPv6 prefix; any other text as it is."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or ip_network((int(parsed), IPV6_PREFIX_BITS), strict=False))
