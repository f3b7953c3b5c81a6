"""The one interface of all lookups, local, remote and routed, and the plain types that it speaks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NewType, Protocol

from query_service.errors import LookupFailedError
from query_service.storage.progress import Absence, Freshness, Time
from statecast.position import Position

Encoded = NewType("Encoded", object)
"""A query, or a part of a query or of a peer's result, as it came: it is passed on without being built again."""


class Key(NamedTuple):
    """A key of a store; `sort` and `member` are both there or both empty."""

    group: str
    sort: str = ""
    member: str = ""


class Bounds(NamedTuple):
    """How fresh a result must be at least; None demands nothing."""

    max_lag_ms: int | None = None
    at_least: Position | None = None


class GetQuery(NamedTuple):
    """Asks for the value of one key, now or as of a commit time."""

    store: str
    key: Key
    bounds: Bounds | None = None
    as_of: Time | None = None
    encoded: Encoded | None = None


KeyQuery = tuple[str, str, str, int, int, Encoded]
"""A key of a batch, plain for speed: group, sort, member, epoch and offset that the caller has (or 0, 0), encoded."""


class RangeQuery(NamedTuple):
    """One range of a batch: the members of a group from `sort_from` up to, and without, `sort_to`."""

    group: str
    sort_from: str = ""
    sort_to: str = ""
    limit: int = 0
    reverse: bool = False
    after: Position | None = None
    whole: bool = False
    encoded: Encoded | None = None


class BatchQuery(NamedTuple):
    """Asks for those keys and ranges that have something newer than `after`, and waits for it."""

    store: str
    keys: Sequence[KeyQuery] = ()
    ranges: Sequence[RangeQuery] = ()
    bounds: Bounds | None = None
    max_wait_s: float = 0.0
    encoded: Encoded | None = None


class ScanQuery(NamedTuple):
    """Asks for a page of a group, or, without a group, of all groups from `group_from` to below `group_to`."""

    store: str
    group: str = ""
    group_from: str = ""
    group_to: str = ""
    sort_from: str = ""
    sort_to: str = ""
    sort_prefix: str = ""
    reverse: bool = False
    local_only: bool = False
    page_size: int = 0
    page_token: str = ""
    bounds: Bounds | None = None
    encoded: Encoded | None = None


class VersionsQuery(NamedTuple):
    """Asks for a page of the versions of a key, the newest first."""

    store: str
    key: Key
    page_size: int = 0
    page_token: str = ""
    bounds: Bounds | None = None
    encoded: Encoded | None = None


class GetResult(NamedTuple):
    """A value as it is stored, with its header, or as a peer has encoded it."""

    value: bytes | Encoded
    freshness: Freshness


class Row(NamedTuple):
    """A row; `key` is its key in the store, and `size`, which only pages need, that of the payload in bytes."""

    key: bytes
    epoch: int
    value: bytes | Encoded
    size: int = 0


class RangeResult(NamedTuple):
    """What is new in a range, or all of it, as of a position; the fields mean what the contract says of them."""

    position: Position
    rows: Sequence[Row] = ()
    removals: Sequence[tuple[bytes, Absence]] = ()
    whole: bool = False
    more: bool = False
    removals_complete: bool = False


IndexedValue = tuple[int, int, bytes | Absence | LookupFailedError | Encoded]
"""The index of a key in its batch, the epoch, and the stored value or what there is instead; plain for speed."""
IndexedRange = tuple[int, RangeResult | LookupFailedError | Encoded]


@dataclass(slots=True)
class BatchResult:
    """The keys and ranges of a batch that have news, and the freshness of each partition that was asked."""

    keys: list[IndexedValue] = field(default_factory=list)
    ranges: list[IndexedRange] = field(default_factory=list)
    freshness: list[Freshness] = field(default_factory=list)

    @property
    def has_news(self) -> bool:
        return bool(self.keys or self.ranges)


class PageResult(NamedTuple):
    """A page of rows; `shards` has the freshness of every partition of a scan of a whole store."""

    rows: Sequence[Row]
    next_page_token: str
    freshness: Freshness | None
    shards: Sequence[Freshness] = ()


class VersionsResult(NamedTuple):
    """A page of stored values that a key has had."""

    values: Sequence[bytes | Encoded]
    next_page_token: str
    freshness: Freshness


class Lookup(Protocol):
    """Looks up what `request_checks` has passed.

    It is called on the event loop and never blocks it. `deadline` is a time of the monotonic clock; a call ends by
    then. Raises a LookupFailedError: AbsentError when there is no value, NotServedError or UnreachableError when
    another replica should be asked, BoundsError when the bounds cannot be met before the deadline. A result says how
    stale it may be, and does not promise more.
    """

    async def get(self, query: GetQuery, deadline: float) -> GetResult:
        """Returns the value of one key."""

    async def batch(self, query: BatchQuery, deadline: float) -> BatchResult:
        """Returns what is newer; waits for it up to `max_wait_s`. The failure of a key stands in its result."""

    async def scan(self, query: ScanQuery, deadline: float, partition: int | None = None) -> PageResult:
        """Returns a page of a group, or, without a group, of many; of one partition when it is named."""

    async def versions(self, query: VersionsQuery, deadline: float) -> VersionsResult:
        """Returns a page of the versions of a key, the newest first; raises NoHistoryError where none are kept."""
