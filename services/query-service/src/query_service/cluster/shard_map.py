"""Which instance holds which partition: the members of the group, ranked for each partition in the same way everywhere.

By rendezvous hashing, each member gets a score for each partition; the highest score is rank 1. When a member comes or
goes, only the partitions in whose first ranks it is change hands. (Thaler and Ravishankar, "A Name-Based Mapping Scheme
for Rendezvous", 1996.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from heapq import nlargest

StorePartition = tuple[str, int]


@dataclass(frozen=True, order=True)
class Member:
    """One instance: its name, its public and its internal address as `host:port`, and when it started.

    `topics` has those of its stores whose topic has another name, as (store, topic): a new generation of one. They
    become more when stores are added while it runs, and it is the same member all the same.
    """

    instance: str
    address: str
    shard_address: str
    started_ms: int = 0
    topics: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def client_id(self) -> str:
        topics = ",".join(f"{store}={topic}" for store, topic in self.topics)
        return f"{self.instance}|{self.address}|{self.shard_address}|{self.started_ms}|{topics}"

    @staticmethod
    def from_client_id(client_id: str) -> "Member | None":
        """Returns the member that a client id names; None for a client that is not an instance of this service."""
        parts = client_id.split("|")
        if len(parts) != 5 or not all(parts[:4]) or not parts[3].isdigit():
            return None
        pairs = [pair.partition("=") for pair in parts[4].split(",") if pair]
        return Member(parts[0], parts[1], parts[2], int(parts[3]), tuple((store, topic) for store, _, topic in pairs))

    def topic_of(self, store: str) -> str:
        return dict(self.topics).get(store, store)


def newest_of_each(members: Iterable[Member]) -> frozenset[Member]:
    """Returns one member per instance name, which may be listed more than once.

    A restarted one is listed beside its dead self until that times out, and one that has more topics now beside itself.
    """
    in_order = sorted(members, key=lambda member: (member.started_ms, len(member.topics)))
    newest = {member.instance: member for member in in_order}
    return frozenset(newest.values())


@dataclass(frozen=True)
class ShardMap:
    """The members as one instance sees them now, and how many of them hold each partition: `of_store`, else `replicas`.

    `departed` have left the group but may still answer: they rank behind all members, so that a partition whose new
    owner has not caught up is still read. Of each store only those count whose `topics` have it from the same topic
    as this instance, so that two generations of a store are held, handed over and asked apart.
    """

    members: frozenset[Member]
    replicas: int
    departed: frozenset[Member] = frozenset()
    of_store: Mapping[str, int] = field(default_factory=dict, hash=False)
    topics: Mapping[str, str] = field(default_factory=dict, hash=False)
    _topics_of: Mapping[str, tuple[tuple[str, str], ...]] = field(init=False, hash=False, repr=False)
    _ranks: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)
    _holders: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        topics_of = {member.instance: member.topics for member in self.members | self.departed}
        object.__setattr__(self, "_topics_of", topics_of)

    def ranked(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns everyone who may answer for the partition, rank 1 first."""
        key = (store, partition)
        ranks = self._ranks.get(key)
        if ranks is None:
            members, departed = self._of(store, self.members), self._of(store, self.departed)
            ranks = _highest(len(members), members, key) + _highest(len(departed), departed, key)
            self._ranks[key] = ranks
        return ranks

    def holders(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns the members that consume the partition: the first `replicas` ranks."""
        key = (store, partition)
        holders = self._holders.get(key)
        if holders is None:
            holders = self._holders[key] = self._choose(self._of(store, self.members), key)
        return holders

    def after(self, before: "ShardMap") -> "ShardMap":
        """Returns this map with those holders that follow from an earlier map of the same instance.

        Where no holder has left, only those who came can have taken the place of one: with many members that is much
        less to compute than all ranks. Stores that have come or gone may change all of it.
        """
        if (self.of_store, self.topics) != (before.of_store, before.topics) or self._have_other_topics(before):
            return self
        came, gone = self.members - before.members, before.members - self.members
        for key, holders in before._holders.items():
            if gone.isdisjoint(holders):
                self._holders[key] = self._choose([*holders, *self._of(key[0], came)], key) if came else holders
        return self

    def _have_other_topics(self, before: "ShardMap") -> bool:
        """Whether an instance of both maps has other topics in this one."""
        both = self._topics_of.keys() & before._topics_of.keys()
        return any(self._topics_of[instance] != before._topics_of[instance] for instance in both)

    def _choose(self, members: Iterable[Member], key: StorePartition) -> tuple[Member, ...]:
        return _highest(self.of_store.get(key[0], self.replicas), members, key)

    def _of(self, store: str, members: Iterable[Member]) -> list[Member]:
        topic = self.topics.get(store, store)
        return [member for member in members if member.topic_of(store) == topic]


@dataclass(eq=False)
class MemberTracker:
    """Turns the group's member lists into shard maps, and remembers for a while who left.

    It never drops this instance once it has been in the group: Kafka may drop one that stood still for longer than the
    session timeout; its data is still good, and it rejoins by itself.
    """

    me: Member
    replicas: int
    departed_s: float
    of_store: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(init=False)
    joined: bool = field(default=False, init=False)
    _members: frozenset[Member] = field(default=frozenset(), init=False)
    _last: ShardMap | None = field(default=None, init=False)
    _departed: dict[Member, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.topics = dict(self.me.topics)

    def update(self, listed: frozenset[Member], now: float) -> ShardMap:
        """Returns the map for a member list that was read at `now`, in seconds of any steady clock.

        Until the list has this instance for the first time, the map has no members: nothing is owned by guesswork.
        After that an empty list is ignored: the broker has just started and has not read its groups yet.
        """
        listed = listed or self._members
        self.joined = self.joined or self.me in listed
        members = listed | {self.me} if self.joined else frozenset()
        for member in self._members - members:
            self._departed[member] = now + self.departed_s
        present = {member.instance for member in members}
        self._departed = {
            member: until for member, until in self._departed.items() if until > now and member.instance not in present
        }
        self._members = members
        return self._map(members, self._departed)

    def set_stores(self, of_store: Mapping[str, int], topics: Mapping[str, str]) -> ShardMap:
        """Returns the map for other stores: `of_store` and `topics` are as those of ShardMap."""
        self.of_store, self.topics = of_store, topics
        return self._map(self._members, self._departed)

    def leave(self) -> ShardMap:
        """Returns the map as the others see it once this instance has left."""
        return self._map(self._members - {self.me}, [self.me])

    def _map(self, members: frozenset[Member], departed: Iterable[Member]) -> ShardMap:
        shard_map = ShardMap(members, self.replicas, frozenset(departed), self.of_store, self.topics)
        if self._last is None or shard_map != self._last:
            self._last = shard_map if self._last is None else shard_map.after(self._last)
        return self._last


def _highest(count: int, members: Iterable[Member], key: StorePartition) -> tuple[Member, ...]:
    return tuple(nlargest(count, members, key=partial(_score, key)))


def _score(key: StorePartition, member: Member) -> tuple[bytes, str]:
    text = f"{member.instance}|{key[0]}|{key[1]}".encode()
    return blake2b(text, digest_size=8).digest(), member.instance
