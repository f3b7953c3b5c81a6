"""Settings of Debezium's connectors that lose or change rows, each with the value that it has where it is missing."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from statecast_onboarding.doctor.finding import Finding, Level

PLACEHOLDER = "__debezium_unavailable_value"


@dataclass(frozen=True)
class Rule:
    """A setting and its values that do harm; without `values` all do but its default."""

    name: str
    level: Level
    text: str
    values: Collection[str] = ()
    default: str = ""

    def finding(self, config: Mapping[str, str]) -> Finding | None:
        value = config.get(self.name, self.default)
        harms = value in self.values if self.values else value != self.default
        return Finding(self.level, self.name, f"is {value}: {self.text}") if harms else None


_NO_ROWS = "sends no rows that are there already: set it to initial, or take a snapshot by hand"
RULES = (
    Rule(
        "unavailable.value.placeholder",
        "FAIL",
        "large values that an update leaves as they are would become this text; leave it out",
        default=PLACEHOLDER,
    ),
    Rule("snapshot.mode", "WARN", _NO_ROWS, ("never", "no_data", "schema_only")),
    Rule("snapshot.mode", "FAIL", "the connector ends after its snapshot; set it to initial", ("initial_only",)),
    Rule("snapshot.mode", "WARN", "each start reads all rows again; set it to initial", ("always",)),
    Rule("snapshot.include.collection.list", "WARN", "rows of other tables that are there already do not come"),
    Rule("snapshot.select.statement.overrides", "WARN", "rows that the statements leave out do not come"),
    Rule("slot.drop.on.stop", "FAIL", "what changes while it is stopped is lost; set it to false", ("true",)),
    Rule("flush.lsn.source", "WARN", "the slot keeps the whole log, which fills the disk; leave it out", ("false",)),
    Rule(
        "event.processing.failure.handling.mode",
        "FAIL",
        "a change that the connector cannot read is lost; set it to fail",
        ("warn", "skip", "ignore"),
    ),
    Rule("errors.tolerance", "FAIL", "a change that cannot be converted is lost; set it to none", ("all",)),
    Rule("binary.handling.mode", "FAIL", "bytes are read as base64; set it to bytes", ("hex", "base64-url-safe")),
    Rule(
        "interval.handling.mode",
        "WARN",
        "months of an interval are counted as days; set it to string",
        ("numeric",),
    ),
    Rule("time.precision.mode", "WARN", "cuts times to milliseconds; set it to isostring", ("connect",)),
    Rule(
        "time.precision.mode",
        "WARN",
        "has no number for times before 1677 or after 2262; set it to isostring",
        ("nanoseconds",),
    ),
    Rule("column.exclude.list", "WARN", "columns that are not sent are empty in every row"),
    Rule("column.include.list", "WARN", "columns that are not sent are empty in every row"),
    Rule("message.key.columns", "WARN", "the record's key is no primary key: name that by source.key in each pipeline"),
    Rule("field.name.adjustment.mode", "WARN", "renames columns: give the message their new names", default="none"),
    Rule("sanitize.field.names", "WARN", "renames columns: give the message their new names", ("true",)),
    Rule("converters", "WARN", "these change values in ways that are not known here: look at the rows"),
    Rule("post.processors", "WARN", "values that it reads are those of now, not those of the change: leave it out"),
)
_COLUMN_VALUES = re.compile(r"column\.(mask|truncate)\..+")
_MORE_TOPICS = (
    ("heartbeat.interval.ms", "0", "__debezium-heartbeat.{prefix}"),
    ("provide.transaction.metadata", "false", "{prefix}.transaction"),
)


def check_settings(config: Mapping[str, str]) -> Iterator[Finding]:
    """Finds settings that lose or change rows, or need a topic that only Kafka's own settings would make."""
    yield from filter(None, (rule.finding(config) for rule in RULES))
    for name in sorted(filter(_COLUMN_VALUES.fullmatch, config)):
        yield Finding("WARN", name, f"is {config[name]}: these columns have other values than in the database")
    if "topic.creation.default.replication.factor" not in config:
        for name, default, topic in _MORE_TOPICS:
            if config.get(name, default) != default:
                written = topic.format(prefix=config.get("topic.prefix", ""))
                text = f"is {config[name]}: it writes to {written}, and waits for ever where that topic is missing"
                yield Finding("WARN", name, f"{text}; create it")
