"""Keeps this instance in the consumer group, and reads the other members from the group."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from typing_extensions import override

from query_service.cluster.broker_thread import BrokerThread
from query_service.cluster.shard_map import Member, newest_of_each
from query_service.errors import NameTakenError
from query_service.settings import Settings
from statecast_service.kafka import connect, reason

_POLL_S = 0.05
_REQUEST_TIMEOUT_S = 3.0
_LIBRDKAFKA_TIMEOUT_S = 600.0

_log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class Membership(BrokerThread):
    """A member of the group from `start` to `stop`, which blocks until the others can see that it has left.

    The group's own assignment is not used: every member takes no partition, and computes its own from the member list.
    While the group's coordinator does not answer, the last list stays valid; no other broker is needed. A leave shows
    at once, a death after the session timeout. `on_members` is called from the thread with each list, changed or not.

    `me` may be replaced by the same member with more topics: it joins once more, as that, and leaves as what it was
    when it is listed, so that it is in the group all the time.

    It ends with a `refusal` when an instance that started earlier has the same name and lives: `name_at` gives the name
    of the instance that answers at an internal address, None if none does, and may block for a moment. It does not join
    then, or leaves if both started at once.
    """

    settings: Settings
    me: Member
    topics: frozenset[str]
    on_members: Callable[[frozenset[Member]], None]
    name_at: Callable[[str], str | None]
    refusal: NameTakenError | None = field(default=None, init=False)
    _admin: AdminClient | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__init__("membership", "members of the group", self.settings.kafka_bootstrap)
        self._refused = False
        self._listed: frozenset[str] = frozenset()

    @override
    def run(self) -> None:
        joined: dict[str, Consumer] = {}
        next_read = 0.0
        self.refusal = self._refusal(self._members() or [])
        try:
            while not self.stopping.is_set() and self.refusal is None:
                client_id = self.me.client_id()
                if client_id not in joined:
                    joined[client_id] = self._join(client_id)
                for consumer in joined.values():
                    message = consumer.poll(_POLL_S / len(joined))
                    if message is not None and (error := message.error()) is not None:
                        self._note(error)
                if time.monotonic() >= next_read:
                    next_read = time.monotonic() + self.settings.membership_interval_ms / 1000
                    self._read_members()
                for former in [each for each in joined if each != client_id and client_id in self._listed]:
                    joined.pop(former).close()
        finally:
            for consumer in joined.values():
                consumer.close()

    def _join(self, client_id: str) -> Consumer:
        options = {
            "group.id": self.settings.group_id,
            "client.id": client_id,
            "session.timeout.ms": self.settings.session_timeout_ms,
            "heartbeat.interval.ms": max(100, self.settings.session_timeout_ms // 6),
            "enable.auto.commit": False,
        }
        consumer = connect(Consumer, self.settings, options)
        consumer.subscribe(sorted(self.topics), on_assign=lambda consumer, _: consumer.assign([]))
        return consumer

    def _note(self, error: KafkaError) -> None:
        why = reason(error, "Read", self.settings.group(self.settings.group_id))
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self._refused:
            _log.warning("the group cannot be joined; trying on", reason=why)
            self._refused = True
        else:
            _log.debug("membership", reason=why)

    def _read_members(self) -> None:
        members = self._members()
        if members is not None:
            self.refusal = self._refusal(members)
            self.on_members(newest_of_each(members))

    def _refusal(self, members: Iterable[Member]) -> NameTakenError | None:
        me = self.me
        for each in members:
            # A dead self is listed until it times out. One with this address is dead, since this process listens there.
            if each.instance != me.instance or each.shard_address == me.shard_address or not _is_earlier(each, me):
                continue
            if self.name_at(each.shard_address) == me.instance:
                where = f"{each.address} (internal: {each.shard_address})"
                problem = f"an instance at {where} has this name and lives: give each a name of its own"
                return NameTakenError(f"QUERY_SERVICE_INSTANCE={me.instance}: {problem}")
        return None

    def _members(self) -> list[Member] | None:
        """All that are listed, whether they live or not; None when the coordinator does not answer in time."""
        # librdkafka aborts the process when its own time-out of this call passes before the coordinator is found, and
        # one is found later (librdkafka issue 4605). So that time-out never comes: a client whose call does not end is
        # thrown away with it.
        if self._admin is None:  # one for which no event waits is false
            self._admin = connect(AdminClient, self.settings)
        admin = self._admin
        group = self.settings.group(self.settings.group_id)
        called = admin.describe_consumer_groups([group], request_timeout=_LIBRDKAFKA_TIMEOUT_S)[group]
        try:
            described = called.result(_REQUEST_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            admin.poll(0)  # says that the broker refuses the connection, if it does
            self._admin = None
            self.failed(str(error) or "no answer in time")
            return None
        self.answered()
        self._listed = frozenset(member.client_id for member in described.members)
        members = [Member.from_client_id(member.client_id) for member in described.members]
        return [member for member in members if member is not None]


def _is_earlier(one: Member, other: Member) -> bool:
    return (one.started_ms, one.shard_address) < (other.started_ms, other.shard_address)
