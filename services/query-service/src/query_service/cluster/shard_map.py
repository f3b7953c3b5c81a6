"""Assigns partitions to instances: ranks the members of the group for each partition in the same way everywhere.

By rendezvous hashing, each member gets a score for each partition; the highest score is rank 1. When a member comes or
goes, only the partitions with it in their first ranks change hands. (Thaler and Ravishankar, "A Name-Based Mapping
Scheme for Rendezvous", 1996.) Members with zones are ranked zone by zone: first the best of each zone by their scores,
then the second best of each, so that the replicas of a partition are in as many zones as there are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter

StorePartition = tuple[str, int]

_MILLISECONDS = re.compile("[0-9]{1,18}")

RULES = 1
"""The version of these rules, as `Member.version` of the contract has it."""


@dataclass(frozen=True, order=True)
class Member:
    """One instance: its name, its public and its internal address as `host:port`, and when it started.

    These are its identity; `facts` has all else. `topics` lists, as (store, topic), the stores that read a topic of
    another name: a new generation. Stores that are added while it runs join the list; the member stays the same.
    `zone` is empty for none. `version` is the highest version of the rules that it knows, and `features` has the names
    of the contract's features that it has. `settings` has those that must be the same at all members, by their names.
    """

    instance: str
    address: str
    shard_address: str
    started_ms: int = 0
    topics: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    zone: str = field(default="", compare=False)
    version: int = field(default=0, compare=False)
    features: frozenset[str] = field(default=frozenset(), compare=False)
    settings: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def facts(self) -> tuple[object, ...]:
        """All that may differ between two that are equal."""
        return self.topics, self.zone, self.version, self.features, self.settings

    @property
    def client_id(self) -> str:
        """The name of the member in the consumer group, which is another one for other topics, by their digest."""
        topics = ",".join(f"{store}={topic}" for store, topic in self.topics)
        if topics:
            topics = f"={blake2b(topics.encode(), digest_size=4).hexdigest()}"
        return f"{self.instance}|{self.address}|{self.shard_address}|{self.started_ms}|{topics}"

    @staticmethod
    def from_client_id(client_id: str) -> "Member | None":
        """Returns the identity that a client id names; None for a client that is not an instance of this service."""
        parts = client_id.split("|")
        if len(parts) != 5 or not all(parts[:4]) or not _MILLISECONDS.fullmatch(parts[3]):
            return None
        return Member(parts[0], parts[1], parts[2], int(parts[3]))

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
    owner has not caught up is still read. `absent` have left so lately that the map waits for them: their
    partitions stay with the other holders alone, if there are any. Of each store only the members count that read it
    from the same topic as this instance, so that two generations of a store are held, handed over and asked apart.
    """

    members: frozenset[Member]
    replicas: int
    departed: frozenset[Member] = frozenset()
    of_store: Mapping[str, int] = field(default_factory=dict, hash=False)
    topics: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: frozenset[Member] = frozenset()
    _facts: Mapping[Member, tuple[object, ...]] = field(init=False, hash=False, repr=False)
    _assigned: frozenset[Member] = field(init=False, compare=False, repr=False)
    _zoned: bool = field(init=False, compare=False, repr=False)
    _readers: "dict[tuple[str, frozenset[Member]], list[_Candidate]]" = field(
        default_factory=dict, compare=False, repr=False
    )
    _ranks: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)
    _chosen: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)
    _holders: dict[StorePartition, tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        assigned = self.members | self.absent
        zoned = any(each.zone for each in assigned)
        facts = {member: member.facts for member in assigned | self.departed}
        for name, value in (("_facts", facts), ("_assigned", assigned), ("_zoned", zoned)):
            object.__setattr__(self, name, value)

    def ranked(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns everyone who may answer for the partition, rank 1 first."""
        key = (store, partition)
        ranks = self._ranks.get(key)
        if ranks is None:
            holders = self.holders(store, partition)
            others = (each for each in self._order(key, self.members) if each not in holders)
            ranks = self._ranks[key] = (*holders, *others, *self._order(key, self.departed))
        return ranks

    def holders(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns the members that consume the partition: the first ranks, without those that are absent."""
        key = (store, partition)
        holders = self._holders.get(key)
        if holders is None:
            holders = chosen = self._choose(key)
            if self.absent:
                holders = tuple(each for each in chosen if each not in self.absent)
            if chosen and not holders:
                holders = tuple(self._order(key, self.members)[: self._count(store)])
            self._holders[key] = holders
        return holders

    def after(self, before: "ShardMap") -> "ShardMap":
        """Returns this map with those choices of holders that follow from an earlier map of the same instance.

        Where no holder has gone for good, only those who came can have taken the place of one: with many members that
        is much less to compute than all ranks. Stores that have come or gone may change all of it, as may other facts.
        """
        if (self.of_store, self.topics, self._zoned) != (before.of_store, before.topics, before._zoned):
            return self
        if any(facts != self._facts.get(member, facts) for member, facts in before._facts.items()):
            return self
        came, gone = self._assigned - before._assigned, before._assigned - self._assigned
        for key, chosen in before._chosen.items():
            if gone.isdisjoint(chosen):
                either = self._candidates(key[0], came.union(chosen)) if came else []
                self._chosen[key] = tuple(self._sorted(either, key)[: self._count(key[0])]) if came else chosen
        return self

    def _choose(self, key: StorePartition) -> tuple[Member, ...]:
        """Returns the holders that the partition has when nobody is absent."""
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = self._chosen[key] = tuple(self._order(key, self._assigned)[: self._count(key[0])])
        return chosen

    def _count(self, store: str) -> int:
        return self.of_store.get(store, self.replicas)

    def _order(self, key: StorePartition, members: frozenset[Member]) -> list[Member]:
        readers = self._readers.get((key[0], members))
        if readers is None:
            readers = self._readers[key[0], members] = self._candidates(key[0], members)
        return self._sorted(readers, key)

    def _candidates(self, store: str, members: Iterable[Member]) -> "list[_Candidate]":
        topic = self.topics.get(store, store)
        return [(f"{each.instance}|".encode(), each) for each in members if each.topic_of(store) == topic]

    def _sorted(self, candidates: "list[_Candidate]", key: StorePartition) -> list[Member]:
        """Returns the members by their place within their zone, if zones count, and then by their scores."""
        suffix = f"{key[0]}|{key[1]}".encode()
        scored = [(blake2b(prefix + suffix, digest_size=8).digest(), each) for prefix, each in candidates]
        by_score = [each for _, each in sorted(scored, reverse=True)]
        if not self._zoned:
            return by_score
        better = Counter[str]()
        places: list[tuple[int, Member]] = []
        for each in by_score:
            places.append((better[each.zone] if each.zone else 0, each))
            better[each.zone] += 1
        return [each for _, each in sorted(places, key=itemgetter(0))]


_Candidate = tuple[bytes, Member]
"""A member, after the bytes that its scores begin with."""


@dataclass(eq=False)
class MemberTracker:
    """Turns the group's member lists into shard maps, and remembers for a while who left.

    Who has left is asked for `departed_s` more, and waited for `replace_after_s` before others copy its partitions. It
    never drops this instance once it has been in the group: Kafka may drop one that stood still for longer than the
    session timeout; its data is still good, and it rejoins by itself.
    """

    me: Member
    replicas: int
    departed_s: float
    of_store: Mapping[str, int] = field(default_factory=dict)
    replace_after_s: float = 0.0
    topics: Mapping[str, str] = field(init=False)
    joined: bool = field(default=False, init=False)
    _members: frozenset[Member] = field(default=frozenset(), init=False)
    _last: ShardMap | None = field(default=None, init=False)
    _left: dict[Member, float] = field(default_factory=dict, init=False)
    """When each member left that is still asked or waited for."""

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
        self._left |= dict.fromkeys(self._members - members, now)
        present = {member.instance for member in members}
        self._left = {member: at for member, at in self._left.items() if member.instance not in present}
        self._members = members
        return self._map(now)

    def at(self, now: float) -> ShardMap:
        """Returns the map of the last list at `now`, when some of those who left may have been given up."""
        return self._map(now) if self._left or self._last is None else self._last

    def set_stores(self, of_store: Mapping[str, int], topics: Mapping[str, str], now: float) -> ShardMap:
        """Returns the map for other stores: `of_store` and `topics` are as those of ShardMap."""
        self.of_store, self.topics = of_store, topics
        return self._map(now)

    def leave(self, now: float) -> ShardMap:
        """Returns the map as the others see it once this instance has left, from now on."""
        self._members, self._left = self._members - {self.me}, {**self._left, self.me: now}
        return self._map(now)

    def _map(self, now: float) -> ShardMap:
        kept_s = max(self.departed_s, self.replace_after_s)
        self._left = {member: at for member, at in self._left.items() if now - at < kept_s or member == self.me}
        departed = frozenset(each for each, at in self._left.items() if now - at < self.departed_s or each == self.me)
        absent = (each for each, at in self._left.items() if now - at < self.replace_after_s)
        shard_map = ShardMap(self._members, self.replicas, departed, self.of_store, self.topics, frozenset(absent))
        if self._last is None or shard_map != self._last:
            self._last = shard_map if self._last is None else shard_map.after(self._last)
        return self._last
