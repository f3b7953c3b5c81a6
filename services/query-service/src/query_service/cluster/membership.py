"""Keeps this instance in the consumer group, and reads the other members from the group."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from typing_extensions import override

from query_service.cluster.broker_thread import BrokerThread
from query_service.cluster.shard_map import Member, newest_of_each
from query_service.settings import Settings
from statecast_service.kafka import connect, reason

_POLL_S = 0.05
_REQUEST_TIMEOUT_S = 3.0

_log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class Membership(BrokerThread):
    """A member of the group from `start` to `stop`, which blocks until the others can see that it has left.

    The group's own assignment is not used: every member takes no partition, and computes its own from the member list.
    While the broker does not answer, the last list stays valid. A leave shows at once, a death after the session
    timeout. `on_members` is called from the thread with each list, changed or not.
    """

    settings: Settings
    me: Member
    topics: frozenset[str]
    on_members: Callable[[frozenset[Member]], None]

    def __post_init__(self) -> None:
        super().__init__("membership", "members of the group", self.settings.kafka_bootstrap)
        self._refused = False

    @override
    def run(self) -> None:
        options = {
            "group.id": self.settings.group_id,
            "client.id": self.me.client_id(),
            "session.timeout.ms": self.settings.session_timeout_ms,
            "heartbeat.interval.ms": max(100, self.settings.session_timeout_ms // 6),
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 5000,
        }
        consumer = connect(Consumer, self.settings, options)
        consumer.subscribe(sorted(self.topics), on_assign=lambda consumer, _: consumer.assign([]))
        admin = connect(AdminClient, self.settings)
        next_read = 0.0
        try:
            while not self.stopping.is_set():
                message = consumer.poll(_POLL_S)
                if message is not None and (error := message.error()) is not None:
                    self._note(error)
                if time.monotonic() >= next_read:
                    next_read = time.monotonic() + self.settings.membership_interval_ms / 1000
                    self._read_members(admin)
        finally:
            consumer.close()

    def _note(self, error: KafkaError) -> None:
        why = reason(error, "Read", self.settings.group_id)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not self._refused:
            _log.warning("the group cannot be joined; trying on", reason=why)
            self._refused = True
        else:
            _log.debug("membership", reason=why)

    def _read_members(self, admin: AdminClient) -> None:
        try:
            # Deprecated, but describe_consumer_groups aborts the process when the broker goes away in the middle of
            # it (librdkafka issue 4605); this older call does not.
            groups: list[Any] = admin.list_groups(self.settings.group_id, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            admin.poll(0)
            self.failed(error)
            return
        self.answered()
        members = [Member.from_client_id(member.client_id) for group in groups for member in group.members]
        self.on_members(newest_of_each(member for member in members if member is not None))
