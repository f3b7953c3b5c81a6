"""The topics that every system has, independent of its domains: records of the edges, messages of job runners."""

from statecast_domains.derived import EDGE, JOBS, QUERY_SERVICE, Topic
from statecast_domains.store_definition import StoreDefinition

KEPT = "What the edges keep: channels, which end before retention.ms, and consumers whose credentials no longer hold."
TOLD = "What the runners of jobs tell each other (`statecast each-local`). A run must end before retention.ms."
CHANNELS, REVOCATIONS, RUNS = "push-channels", "revoked-consumers", "job-runs"
PARTITIONS = 4


def own_topics(prefix: str) -> list[Topic]:
    """Returns the topics, named with the prefix."""
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


def edge_stores(prefix: str) -> list[StoreDefinition]:
    """Returns the stores of the edges' records, which no client reads."""
    channels = {"message": "statecast.push.v2.ChannelRecord", "keeps": "members", "retain": "48h"}
    revocations = {"message": "statecast.push.v2.Revocation"}
    return [
        StoreDefinition.model_validate({"name": name, "topic": prefix + name, "format": "plain", **fields})
        for name, fields in ((CHANNELS, channels), (REVOCATIONS, revocations))
    ]
