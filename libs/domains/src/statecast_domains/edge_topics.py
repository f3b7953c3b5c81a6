"""What the edges keep for themselves, in every system: channels, and consumers whose credentials no longer hold."""

from statecast_domains.derived import EDGE, QUERY_SERVICE, Store, Topic

ABOUT = "What the edges keep: channels, which end before retention.ms, and consumers whose credentials no longer hold."
CHANNELS, REVOCATIONS = "push-channels", "revoked-consumers"
MURMUR2 = "murmur2"


def edge_topics(prefix: str) -> list[Topic]:
    """The topics, whose names begin with the prefix."""
    ended = {"cleanup.policy": "compact,delete", "retention.ms": "172800000"}
    return [_topic(prefix + CHANNELS, ended), _topic(prefix + REVOCATIONS, {"cleanup.policy": "compact"})]


def _topic(name: str, config: dict[str, str]) -> Topic:
    written = Topic(name, 4, config, about=ABOUT).with_access(EDGE, "Write")
    return written.with_access(QUERY_SERVICE, "Read", "DescribeConfigs")


def edge_stores(prefix: str) -> list[Store]:
    """The stores that hold them, which no client reads."""
    channel, revocation = "statecast.push.v1.ChannelRecord", "statecast.push.v1.Revocation"
    return [
        Store(CHANNELS, prefix + CHANNELS, channel, None, partitioner=MURMUR2, retain="48h", about=ABOUT),
        Store(REVOCATIONS, prefix + REVOCATIONS, revocation, None, partitioner=MURMUR2, about=ABOUT),
    ]
