"""Tells which topics hold no rows under their keys, although a pipeline reads them as tables."""

from collections.abc import Iterator, Mapping

from statecast_domains.pipeline_file import PipelineFile

CLEANUP_POLICY = "cleanup.policy"


def is_compacted(policy: str) -> bool:
    """Whether a topic with this `cleanup.policy` keeps the newest record of each key."""
    return "compact" in policy.split(",")


def events_as_rows(pipeline: PipelineFile, policies: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Finds tables of other makers whose topics are not compacted: the key in the file, and the problem.

    `policies` has the `cleanup.policy` by topic, as far as it is known. A route keeps no rows, so it may read events.
    """
    for section, source in pipeline.sources.items():
        by_offset = source.table in ("protobuf", "json") and pipeline.keep.shape != "route"
        policy = policies.get(source.topic, "compact")
        if by_offset and not is_compacted(policy):
            yield f"{section}.topic", not_compacted(source.topic, policy)


def not_compacted(topic: str, policy: str) -> str:
    """Why the topic is no table, and what to do about it."""
    return (
        f"{topic} is read as a table and is not compacted ({CLEANUP_POLICY} is {policy}), so its records look like "
        "events: each would be the newest version of the row under its key, in place of the one before. If they are "
        "rows, make the topic a compacted one; events, each of which counts, are read by a route, or as changes"
    )
