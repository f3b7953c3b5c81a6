"""Finds topics with the wrong `cleanup.policy`: tables that are not compacted, changes and events that are."""

from collections.abc import Iterator, Mapping

from statecast_domains.pipeline_file import PipelineFile

CLEANUP_POLICY = "cleanup.policy"
COMPACTION_LAG = "min.compaction.lag.ms"
MIN_COMPACTION_LAG_MS = 3_600_000
"""An hour, an outage that nobody has to hurry for: a table that is compacted sooner is refused."""


def is_compacted(policy: str) -> bool:
    """Returns whether a topic with this `cleanup.policy` keeps the newest record of each key."""
    return "compact" in policy.split(",")


def keeps_rows(pipeline: PipelineFile) -> bool:
    """Returns whether the pipeline remembers rows; a route without totals does not."""
    return pipeline.keep.route is None or bool(pipeline.keep.route.totals)


def misread_topics(pipeline: PipelineFile, policies: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Finds topics with the wrong `cleanup.policy` for the pipeline: yields the key in the file, and the problem.

    `policies` has the `cleanup.policy` by topic, as far as it is known.
    """
    yield from events_as_rows(pipeline, policies)
    for section, source in pipeline.sources.items():
        policy = policies.get(source.topic, "delete")
        if source.events and is_compacted(policy):
            yield f"{section}.topic", compacted_events(source.topic, policy)
        elif keeps_rows(pipeline) and source.table is None and is_compacted(policy):
            yield f"{section}.topic", compacted_changes(source.topic, policy)


def events_as_rows(pipeline: PipelineFile, policies: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Finds tables of other makers with topics that are not compacted: yields the key in the file, and the problem.

    `policies` has the `cleanup.policy` by topic, as far as it is known. A route keeps no rows, so it may read events.
    """
    for section, source in pipeline.sources.items():
        by_offset = source.table in ("protobuf", "json") and pipeline.keep.shape != "route"
        policy = policies.get(source.topic, "compact")
        if by_offset and not is_compacted(policy):
            yield f"{section}.topic", not_compacted(source.topic, policy)


def not_compacted(topic: str, policy: str) -> str:
    """Returns the reason why the topic is no table, and the remedy."""
    return (
        f"{topic} is read as a table and is not compacted ({CLEANUP_POLICY} is {policy}), so its records look like "
        "events: each would be the newest version of the row under its key, in place of the one before. If they are "
        "rows, make the topic a compacted one; if they are events, each of which counts, say source.format: events"
    )


def compacted_changes(topic: str, policy: str) -> str:
    """Returns the reason why no pipeline that keeps rows may read the topic, and the remedy."""
    return (
        f"{topic} is read as changes and is compacted ({CLEANUP_POLICY} is {policy}): of a deleted row the tombstone "
        "alone may be left, which tells no place in the log, and the row would stay for good. Set its "
        f"{CLEANUP_POLICY} to delete, and its retention.ms to longer than the process may stand still, or -1"
    )


def compacted_events(topic: str, policy: str) -> str:
    """Returns the reason why the topic cannot be read as events, and the remedy."""
    return (
        f"{topic} is read as events and is compacted ({CLEANUP_POLICY} is {policy}): of the events under one key all "
        f"but the last would vanish. Set its {CLEANUP_POLICY} to delete; if they are rows, say source.format: table"
    )
