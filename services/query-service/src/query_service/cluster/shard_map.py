"""Which instance holds which partition: the members of the group, ranked for each partition in the same way everywhere.

By rendezvous hashing, each member gets a score for each partition; the highest score is rank 1. When a member comes or
goes, only the partitions in whose first ranks it is change hands. (Thaler and Ravishankar, "A Name-Based Mapping Scheme
for Rendezvous", 1996.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

StorePartition = tuple[str, int]


@dataclass(frozen=True, order=True)
class Member:
    """One instance: its name, its public and its internal address as `host:port`, and when it started.

    `topics` has those of its stores whose topic has another name, as (store, topic): a new generation of one.
    """

    instance: str
    address: str
    shard_address: str
    started_ms: int = 0
    topics: tuple[tuple[str, str], ...] = ()

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
    """Returns one member per instance name: a restarted one is listed beside its dead self until that times out."""
    newest = {member.instance: member for member in sorted(members, key=lambda member: member.started_ms)}
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
    _ranks: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)

    def ranked(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns everyone who may answer for the partition, rank 1 first."""
        key = (store, partition)
        ranks = self._ranks.get(key)
        if ranks is None:
            ranks = _by_score(self._of(store, self.members), key) + _by_score(self._of(store, self.departed), key)
            self._ranks[key] = ranks
        return ranks

    def holders(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns the members that consume the partition: the first `replicas` ranks."""
        replicas = self.of_store.get(store, self.replicas)
        return self.ranked(store, partition)[: min(replicas, len(self._of(store, self.members)))]

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
    joined: bool = field(default=False, init=False)
    _members: frozenset[Member] = field(default=frozenset(), init=False)
    _departed: dict[Member, float] = field(default_factory=dict, init=False)

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

    def leave(self) -> ShardMap:
        """Returns the map as the others see it once this instance has left."""
        return self._map(self._members - {self.me}, [self.me])

    def _map(self, members: frozenset[Member], departed: Iterable[Member]) -> ShardMap:
        return ShardMap(members, self.replicas, frozenset(departed), self.of_store, dict(self.me.topics))


def _by_score(members: Iterable[Member], key: StorePartition) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: (_score(member, key), member.instance), reverse=True))


def _score(member: Member, key: StorePartition) -> bytes:
    return blake2b(f"{member.instance}|{key[0]}|{key[1]}".encode(), digest_size=8).digest()
