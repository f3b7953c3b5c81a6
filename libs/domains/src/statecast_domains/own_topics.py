"""The topics that every system has, whatever its domains are: what the edges keep, and what runners of jobs tell."""

from statecast_domains.derived import EDGE, JOBS, QUERY_SERVICE, Store, Topic

KEPT = "What the edges keep: channels, which end before retention.ms, and consumers whose credentials no longer hold."
TOLD = "What the runners of jobs tell each other (`statecast each-local`). A run must end before retention.ms."
CHANNELS, REVOCATIONS, RUNS = "push-channels", "revoked-consumers", "job-runs"
MURMUR2 = "murmur2"
PARTITIONS = 4


def own_topics(prefix: str) -> list[Topic]:
    """The topics, whose names begin with the prefix."""
    ended = {"cleanup.policy": "compact,delete", "retention.ms": "172800000"}
    # Compaction would leave the last word on a row, and the first one decides who handles it.
    runs = Topic(prefix + RUNS, PARTITIONS, {"cleanup.policy": "delete", "retention.ms": "2592000000"}, about=TOLD)
    return [
        _of_edges(prefix + CHANNELS, ended),
        _of_edges(prefix + REVOCATIONS, {"cleanup.policy": "compact"}),
        runs.with_access(JOBS, "Read", "Write"),
    ]


def _of_edges(name: str, config: dict[str, str]) -> Topic:
    written = Topic(name, PARTITIONS, config, about=KEPT).with_access(EDGE, "Write")
    return written.with_access(QUERY_SERVICE, "Read", "DescribeConfigs")


def edge_stores(prefix: str) -> list[Store]:
    """The stores that hold what the edges keep, which no client reads."""
    channel, revocation = "statecast.push.v1.ChannelRecord", "statecast.push.v1.Revocation"
    return [
        Store(CHANNELS, prefix + CHANNELS, channel, None, partitioner=MURMUR2, retain="48h", about=KEPT),
        Store(REVOCATIONS, prefix + REVOCATIONS, revocation, None, partitioner=MURMUR2, about=KEPT),
    ]
