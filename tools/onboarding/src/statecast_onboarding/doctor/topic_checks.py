"""Checks the settings of a topic: how long records are kept, and how large they may be."""

from collections.abc import Iterator, Mapping

from statecast_domains.row_topics import COMPACTION_LAG, MIN_COMPACTION_LAG_MS
from statecast_onboarding.doctor.finding import Finding, fail, warn
from statecast_onboarding.doctor.team_files import TeamFiles

RESUME_LIMIT_MS = 43_200_000
"""QUERY_SERVICE_RESUME_LIMIT_S as it ships: how long an instance may be away and go on where it was."""


def is_compacted(config: Mapping[str, str] | None) -> bool:
    """Returns whether a topic keeps the newest record of each key."""
    return "compact" in (config or {}).get("cleanup.policy", "").split(",")


def check_settings_of(name: str, config: Mapping[str, str], files: TeamFiles) -> Iterator[Finding]:
    """Looks at the settings of a topic that pipelines write, or read as changes or as a table."""
    subject = f"topic {name}"
    if name in files.sinks:
        yield from _keyed(subject, config)
    elif name in files.tables:
        yield from _table(subject, config)
    elif name in files.sources:
        yield from _changes(subject, config)
    declared = int(files.topics[name].get("config", {}).get("max.message.bytes", "0"))
    if int(config.get("max.message.bytes", declared)) < declared:
        text = f"max.message.bytes is {config['max.message.bytes']}, the files say {declared}"
        yield warn(subject, f"{text}: a larger record ends its writer; raise it")


def _keyed(subject: str, config: Mapping[str, str]) -> Iterator[Finding]:
    if config.get("cleanup.policy") != "compact":
        text = f"cleanup.policy is {config.get('cleanup.policy')}: rows that do not change are lost; set it to compact"
        yield fail(subject, text)
    retention = int(config.get("delete.retention.ms", RESUME_LIMIT_MS))
    if retention < RESUME_LIMIT_MS:
        text = f"delete.retention.ms is {retention}: an instance that was away longer reads everything again"
        yield warn(subject, f"{text}; set it to {RESUME_LIMIT_MS} or more")
    yield from _compaction_lag(subject, config, "of a row that was written again, the older record alone may be left")


def _compaction_lag(subject: str, config: Mapping[str, str], harm: str) -> Iterator[Finding]:
    """Fails when compaction may take records away that a restart of the processor still needs."""
    lag = int(config.get(COMPACTION_LAG, "0"))
    if lag < MIN_COMPACTION_LAG_MS:
        remedy = "set it to longer than the processor may stand still, 86400000 is a day"
        yield fail(subject, f"{COMPACTION_LAG} is {lag}: {harm}; {remedy}")


def _table(subject: str, config: Mapping[str, str]) -> Iterator[Finding]:
    policy = config.get("cleanup.policy")
    if not is_compacted(config):
        text = f"is read as a table, and cleanup.policy is {policy}: rows that do not change are lost"
        remedy = "set it to compact, or read events by format: events"
        yield fail(subject, f"{text}, and of events each would be the row of its key; {remedy}")
    elif policy != "compact":
        yield warn(subject, f"cleanup.policy is {policy}: rows that do not change are lost in time; set it to compact")
    yield from _compaction_lag(
        subject, config, "a restart may miss rows that left a group, so the processor refuses it"
    )


def _changes(subject: str, config: Mapping[str, str]) -> Iterator[Finding]:
    if is_compacted(config):
        text = f"holds changes, and cleanup.policy is {config.get('cleanup.policy')}: compaction takes deletes away"
        yield fail(subject, f"{text}, and their rows stay; set it to delete, with a retention.ms of some days")
        return
    retention = int(config.get("retention.ms", "-1"))
    if 0 <= retention < RESUME_LIMIT_MS:
        text = f"retention.ms is {retention}: a processor that was away longer loses changes"
        yield warn(subject, f"{text}; set it to some days")
