"""Turns the group's member lists into shard maps: who is in, and who left but may still answer."""

from collections.abc import Iterable, Mapping

from query_service.cluster.shard_map import Member, ShardMap


class Roster:
    """Remembers the members that left for a while, and never drops this instance once it has been in the group.

    Kafka may drop an instance that stood still for longer than the session timeout; its data is still good, and it
    joins again by itself.
    """

    def __init__(self, me: Member, replicas: int, departed_s: float, of_store: Mapping[str, int] | None = None) -> None:
        """Starts outside of the group. `of_store` has the stores with another number of replicas."""
        self._me = me
        self._replicas = replicas
        self._of_store = of_store or {}
        self._departed_s = departed_s
        self._members: frozenset[Member] = frozenset()
        self._departed: dict[Member, float] = {}
        self.joined = False

    def update(self, listed: frozenset[Member], now: float) -> ShardMap:
        """Returns the map for a member list that was read at `now`, in seconds of any steady clock.

        Until the list has this instance for the first time, the map has no members: nothing is owned by guesswork.
        After that an empty list says nothing: the broker has just started and has not read its groups yet.
        """
        listed = listed or self._members
        self.joined = self.joined or self._me in listed
        members = listed | {self._me} if self.joined else frozenset()
        for gone in self._members - members:
            self._departed[gone] = now + self._departed_s
        back = {member.instance for member in members}
        self._departed = {
            member: until for member, until in self._departed.items() if until > now and member.instance not in back
        }
        self._members = members
        return self._map(members, self._departed)

    def leave(self) -> ShardMap:
        """Returns the map without this instance, as the others see it once it has left."""
        return self._map(self._members - {self._me}, [self._me])

    def _map(self, members: frozenset[Member], departed: Iterable[Member]) -> ShardMap:
        return ShardMap(members, self._replicas, frozenset(departed), self._of_store, dict(self._me.topics))
