"""Which instance serves which partition: rendezvous hashing over the members, the same everywhere.

Each member gets a score for each partition; the highest score is rank 1. When a member comes or goes, only the
partitions in whose first ranks it stands change hands. (Thaler and Ravishankar, "A Name-Based Mapping Scheme for
Rendezvous", 1996.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b


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
        """Returns the client id under which the instance joins the group."""
        topics = ",".join(f"{store}={topic}" for store, topic in self.topics)
        return f"{self.instance}|{self.address}|{self.shard_address}|{self.started_ms}|{topics}"

    @staticmethod
    def from_client_id(client_id: str) -> "Member | None":
        """Returns the member that a client id names; None for a client that is not an instance of this service."""
        parts = client_id.split("|")
        if len(parts) != 5 or not all(parts[:4]) or not parts[3].isdigit():
            return None
        named = [each.partition("=") for each in parts[4].split(",") if each]
        return Member(parts[0], parts[1], parts[2], int(parts[3]), tuple((store, topic) for store, _, topic in named))

    def topic_of(self, store: str) -> str:
        """Returns the topic that a store is made from at this instance."""
        return dict(self.topics).get(store, store)


def newest_of_each(members: Iterable[Member]) -> frozenset[Member]:
    """Returns one member per instance name: a restarted instance stands beside its dead self until that times out."""
    newest: dict[str, Member] = {}
    for member in sorted(members, key=lambda each: each.started_ms):
        newest[member.instance] = member
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
    _ranks: dict[tuple[str, int], tuple[Member, ...]] = field(default_factory=dict, compare=False, repr=False)

    def ranked(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns everyone who may answer for the partition, rank 1 first."""
        place = (store, partition)
        ranks = self._ranks.get(place)
        if ranks is None:
            ranks = _by_score(self._of(store, self.members), place) + _by_score(self._of(store, self.departed), place)
            self._ranks[place] = ranks
        return ranks

    def holders(self, store: str, partition: int) -> tuple[Member, ...]:
        """Returns the members that consume the partition: the first `replicas` ranks."""
        replicas = self.of_store.get(store, self.replicas)
        return self.ranked(store, partition)[: min(replicas, len(self._of(store, self.members)))]

    def _of(self, store: str, members: Iterable[Member]) -> list[Member]:
        topic = self.topics.get(store, store)
        return [member for member in members if member.topic_of(store) == topic]


def _by_score(members: Iterable[Member], place: tuple[str, int]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: (_score(member, place), member.instance), reverse=True))


def _score(member: Member, place: tuple[str, int]) -> bytes:
    return blake2b(f"{member.instance}|{place[0]}|{place[1]}".encode(), digest_size=8).digest()
