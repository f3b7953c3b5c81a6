"""Keeps this instance in the consumer group, and reads the other members from the group."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import structlog
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    ConsumerGroupDescription,
)
from typing_extensions import override

from query_service.cluster.broker_thread import BrokerThread
from query_service.cluster.shard_map import Member, newest_of_each
from query_service.errors import NameTakenError
from query_service.settings import Settings
from statecast_service.kafka import connect, reason

_POLL_S = 0.05
_HEARTBEAT_MS = 500
"""A rebalance begins at a member with its next heartbeat."""
_REST_S = 300.0
_METADATA_MS = 60_000
"""Nothing is read from the topic by which the group is joined."""
_REQUEST_TIMEOUT_S = 3.0
_LIBRDKAFKA_TIMEOUT_S = 600.0

_log = structlog.get_logger()


Ask = Callable[[Collection[str]], Mapping[str, Member]]
"""Asks the instances at internal addresses who they are; those that do not answer are left out."""


@dataclass(eq=False, repr=False)
class Membership(BrokerThread):
    """A member of the group from `start` to `stop`, which blocks until the others can see that it has left.

    The group's own assignment is not used: every member takes no partition, and computes its own from the member list.
    The list is read when the group changes, which is a rebalance of it, until it is stable, and every five minutes. A
    leave shows within half a second, a death after the session timeout. While the group's coordinator does not answer,
    the last list stays valid; no other broker is needed. `on_members` is called from the thread with each list, changed
    or not, as the newest member of each name.

    The group says who lives; each member is asked once for its facts, by `ask`, which may block for a moment. One that
    does not answer is no member yet, and is asked again: nobody can read from it, and it may be a dead one of before.

    `me` may be replaced by the same member with more topics. It then joins once more, and its former entry leaves when
    the new one is listed, so that it is in the group all the time.

    It ends with a `refusal` when an instance that started earlier has the same name and lives. It does not join then,
    or leaves if both started at once.
    """

    settings: Settings
    me: Member
    topics: frozenset[str]
    on_members: Callable[[frozenset[Member]], None]
    ask: Ask
    refusal: NameTakenError | None = field(default=None, init=False)
    is_settled: bool = field(default=False, init=False)
    """Whether the last list was that of a stable group with this member, in which all answered."""
    _admin: AdminClient | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__init__("membership", "members of the group", self.settings.kafka_bootstrap)
        self._refused = False
        self._next_read = 0.0
        self._known: dict[str, Member] = {}
        """The members with their facts, by the client ids that are listed."""
        self._silent: frozenset[str] = frozenset()
        """The client ids of those that are listed and do not answer."""
        self._listed: frozenset[str] = frozenset()
        self._topic = 0
        """By which of the topics, in order, the group is joined: by one that does not exist, librdkafka joins none."""
        self._topic_missing = False

    @override
    def run(self) -> None:
        joined: dict[str, Consumer] = {}
        self._read_members(join=False)
        try:
            while not self.stopping.is_set() and self.refusal is None:
                client_id = self.me.client_id
                if client_id not in joined:
                    joined[client_id] = self._join(client_id)
                for consumer in joined.values():
                    message = consumer.poll(_POLL_S / len(joined))
                    if message is not None and (error := message.error()) is not None:
                        self._note(error)
                if time.monotonic() >= self._next_read:
                    self._try_next_topic(joined.values())
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
            "heartbeat.interval.ms": max(100, min(_HEARTBEAT_MS, self.settings.session_timeout_ms // 6)),
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": _METADATA_MS,
        }
        consumer = connect(Consumer, self.settings, options)
        self._subscribe(consumer)
        return consumer

    def _subscribe(self, consumer: Consumer) -> None:
        topics = sorted(self.topics)
        # By one topic, since the group's record in Kafka has the subscription of each member.
        topic = topics[self._topic % len(topics)]
        consumer.subscribe([topic], on_assign=lambda consumer, _: consumer.assign([]), on_revoke=self._rebalance)

    def _try_next_topic(self, consumers: Iterable[Consumer]) -> None:
        if self._topic_missing and len(self.topics) > 1:
            self._topic += 1
            for consumer in consumers:
                self._subscribe(consumer)
        self._topic_missing = False

    def _rebalance(self, _consumer: Consumer, _partitions: object) -> None:
        self._next_read = 0.0

    def _note(self, error: KafkaError) -> None:
        why = reason(error, "Read", self.settings.group(self.settings.group_id))
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            self._topic_missing = True
            self._next_read = min(self._next_read, time.monotonic() + self.settings.membership_interval_ms / 1000)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self._refused:
            _log.warning("cannot join the group; retrying", reason=why)
            self._refused = True
        else:
            _log.debug("membership", reason=why)

    def _read_members(self, *, join: bool = True) -> None:
        """Reads the list, and again soon unless it is that of a stable group in which all answer."""
        described = self._described()
        self.is_settled = False
        if described is not None:
            self._ask_new({each.client_id for each in described.members})
            self.refusal = self._refusal()
            if join and self.refusal is None:
                self.on_members(newest_of_each(self._known.values()))
            is_stable = described.state == ConsumerGroupState.STABLE and self.me in self._known.values()
            self.is_settled = is_stable and not self._silent
        interval_s = _REST_S if self.is_settled else self.settings.membership_interval_ms / 1000
        self._next_read = time.monotonic() + (interval_s if join else 0)

    def _ask_new(self, listed: set[str]) -> None:
        """Keeps the facts of those that are listed, and asks those that are new."""
        self._listed = frozenset(listed)
        members = {each: member for each in listed if (member := Member.from_client_id(each)) is not None}
        known = {each: self._known[each] for each in members.keys() & self._known.keys()}
        known |= {each: self.me for each, member in members.items() if member == self.me}
        new = {each: member for each, member in members.items() if each not in known}
        answers = self.ask({member.shard_address for member in new.values()}) if new else {}
        for client_id, listed_as in new.items():
            answer = answers.get(listed_as.shard_address)
            # Else another one, or the same of another start: the one that is listed has died.
            if answer is not None and answer == listed_as:
                known[client_id] = answer
        self._known, silent = known, frozenset(new.keys() - known.keys())
        for client_id in silent - self._silent:
            other = answers.get(new[client_id].shard_address)
            event = "in the group, and does not answer at its internal address: no member yet"
            _log.warning(event, member=client_id, answers=None if other is None else other.instance)
        self._silent = silent

    def _refusal(self) -> NameTakenError | None:
        me = self.me
        for each in self._known.values():
            if each.instance == me.instance and each != me and _is_earlier(each, me):
                where = f"{each.address} (internal: {each.shard_address})"
                problem = f"an instance at {where} has this name and lives: give each a name of its own"
                return NameTakenError(f"QUERY_SERVICE_INSTANCE={me.instance}: {problem}")
        return None

    def _described(self) -> ConsumerGroupDescription | None:
        """Returns the group, which lists all members, whether they live or not; None when its coordinator is late."""
        # librdkafka aborts the process when its own time-out of this call passes before the coordinator is found, and
        # one is found later (librdkafka issue 4605). So that time-out never comes: a client with an endless call is
        # thrown away with it.
        if self._admin is None:  # one for which no event waits is false
            self._admin = connect(AdminClient, self.settings, {"topic.metadata.refresh.interval.ms": _METADATA_MS})
        admin = self._admin
        group = self.settings.group(self.settings.group_id)
        called = admin.describe_consumer_groups([group], request_timeout=_LIBRDKAFKA_TIMEOUT_S)[group]
        try:
            described: ConsumerGroupDescription = called.result(_REQUEST_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            admin.poll(0)  # says that the broker refuses the connection, if it does
            self._admin = None
            self.failed(str(error) or "no answer in time")
            return None
        self.answered()
        return described


def _is_earlier(one: Member, other: Member) -> bool:
    return (one.started_ms, one.shard_address) < (other.started_ms, other.shard_address)
