"""Checks a connector's transforms: pipelines read changes in Debezium's form, and all of them."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from statecast_onboarding.doctor.finding import Finding, fail, warn

_ENVELOPE = "changes need before, after, op and source as they are: remove it"
HARMFUL: Mapping[str, str] = {
    "ExtractNewRecordState": "takes the envelope away, and with it the row before, the operation and the position; "
    "pipelines of format debezium-json set such records aside: remove it",
    "EventRouter": "makes events of an outbox, which are no changes of rows: give them a connector of their own",
    "MongoEventRouter": "makes events of an outbox, which are no changes of rows: give them a connector of their own",
    "Filter": "drops changes, so rows go stale or stay: filter by `where:` of a pipeline",
    "ContentBasedRouter": "may send changes of one row to several topics: remove it",
    "TimestampRouter": "sends changes of one row to another topic each day: remove it",
    "PartitionRouting": "sends changes of one row to several partitions when the field changes: remove it",
    "ValueToKey": "makes another key than the primary key, which tombstones and compaction go by: remove it",
    "HoistField": _ENVELOPE,
    "Flatten": _ENVELOPE,
    "ExtractField": _ENVELOPE,
    "ReplaceField": _ENVELOPE,
    "MaskField": _ENVELOPE,
    "InsertField": _ENVELOPE,
    "Cast": _ENVELOPE,
    "TimestampConverter": _ENVELOPE,
}
"""Transforms by the name of their class, with their effect on changes."""
_OF_TOPICS = ("RegexRouter", "ByLogicalTableRouter", "SchemaChangeEventFilter")
_OF_HEADERS = ("InsertHeader", "DropHeaders", "HeaderFrom", "SetSchemaMetadata", "ExtractChangedRecordState")
HARMLESS = frozenset((*_OF_TOPICS, *_OF_HEADERS))
_ROUTERS = {"RegexRouter": ("regex", "replacement"), "ByLogicalTableRouter": ("topic.regex", "topic.replacement")}


def check_transforms(config: Mapping[str, str]) -> Iterator[Finding]:
    """Looks at each transform that `transforms` names. One under a predicate does harm to the records that it takes."""
    for alias, kind in _transforms(config):
        name = f"transforms.{alias}.type"
        if kind == "Filter" and _predicate(config, alias) == "RecordIsTombstone":
            yield warn(name, "drops tombstones: where the topic is compacted deleted rows stay; remove it")
        elif kind in HARMFUL:
            yield fail(name, f"{kind}: {HARMFUL[kind]}")
        elif kind not in HARMLESS:
            yield warn(
                name, f"{kind} is not known: look that it leaves before, after, op, source and the key as they are"
            )


def merged_topics(config: Mapping[str, str], topics: Sequence[str]) -> Mapping[str, list[str]]:
    """Returns the topics that routers fill from several of `topics`, each with those."""
    routed = defaultdict(list)
    for topic in topics:
        name = topic
        for alias, kind in _transforms(config):
            if kind in _ROUTERS:
                regex, replacement = (config.get(f"transforms.{alias}.{each}", "") for each in _ROUTERS[kind])
                name = _routed(name, regex, replacement)
        routed[name].append(topic)
    return {name: several for name, several in routed.items() if len(set(several)) > 1}


def _routed(topic: str, regex: str, replacement: str) -> str:
    """Returns the topic as a Java regex of the whole name renames it; unchanged where Python rejects the regex."""
    try:
        match = re.fullmatch(regex, topic)
        return match.expand(re.sub(r"\$(\d)", r"\\g<\1>", replacement)) if match else topic
    except (re.error, IndexError):
        return topic


def _transforms(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the alias of each transform, with the name of its class, without `$Key` and `$Value`."""
    for alias in filter(None, map(str.strip, config.get("transforms", "").split(","))):
        yield alias, _class_name(config.get(f"transforms.{alias}.type", ""))


def _predicate(config: Mapping[str, str], alias: str) -> str:
    """Returns the class of the predicate that selects a transform's records; empty where it takes all others."""
    if config.get(f"transforms.{alias}.negate", "false") == "true":
        return ""
    predicate = config.get(f"transforms.{alias}.predicate", "")
    return _class_name(config.get(f"predicates.{predicate}.type", ""))


def _class_name(kind: str) -> str:
    return kind.rpartition(".")[2].partition("$")[0]
