"""Entries of the topics file and of both stores files, and the connector's configuration, of a table."""

from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from statecast_onboarding.connector_file import TABLES, ConnectorFile, include_entries, include_entry, settings_of
from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.pipeline_files import Keyed, in_yaml, readers
from statecast_onboarding.postgres_table import split_name, topic_of
from statecast_onboarding.table import Table
from statecast_service.topic_names import MAX_TOPIC_NAME, is_topic_name

TOPICS_HEAD = """\
# Topics. `kafka-topics topics.yaml` creates what is missing and checks what exists.
# The number of partitions of a keyed topic can never change without a new topic: it is how far reading can be spread.
topics:
"""
_QUERY_STORES_HEAD = """\
# What the query service serves: QUERY_SERVICE_STORES.
stores:
  # What the edges keep for themselves.
  - {name: push-channels, topic: CHANNELS, message: statecast.push.v1.ChannelRecord, format: plain, retain: 48h}
  - {name: revoked-consumers, topic: REVOCATIONS, message: statecast.push.v1.Revocation, format: plain}
"""
EDGE_STORES_HEAD = """\
# What clients may read, and who sees the rows: WS_EDGE_STORES. Staff see all rows of all stores.
#   message: a message of the contract, or of the directory STATECAST_DESCRIPTORS; `json` for a plain store of JSON
#   owner: staff                         nobody but staff
#          everyone                      all consumers
#          {field: F}                    the consumer whose id stands in the row's field F
#          {field: F, group: true}       the same, and the group of every key is that id as well
stores:
"""
CHANNELS = "push-channels"
"""The edges' store of channels, and its topic without the prefix."""
_EDGE_TOPICS = (CHANNELS, "revoked-consumers")
_DEAD_LETTER = ".dead-letter"
MAX_TOPIC = MAX_TOPIC_NAME - len(_DEAD_LETTER)
DELETE = '{cleanup.policy: delete, retention.ms: "604800000"}'
DEAD_LETTERS = '{cleanup.policy: delete, retention.ms: "1209600000", max.message.bytes: "1064972"}'
PASSWORD_REFERENCE = "${file:/etc/connect/database.properties:password}"  # noqa: S105  where the password is
"""Kafka Connect replaces it by what its FileConfigProvider reads; a password in the file would be in every backup."""


def query_stores_head(prefix: str) -> str:
    """The beginning of the query service's stores file, with the edges' own stores."""
    channels, revocations = (in_yaml(prefix + topic) for topic in _EDGE_TOPICS)
    return _QUERY_STORES_HEAD.replace("CHANNELS", channels).replace("REVOCATIONS", revocations)


def domain_head(prefix: str) -> str:
    """The beginning of `domain.yaml`, which stands beside the pipelines."""
    own = f"topic_prefix: {in_yaml(prefix)}\n" if prefix else ""
    return f"# What the pipelines beside it read: topics that others write.\n{own}topics:\n"


def domain_entries(table: Table, partitions: int) -> dict[str, str]:
    """The entry of `domain.yaml`, by topic."""
    entry = f"  - {{name: {in_yaml(table.topic)}, partitions: {partitions}, writers: [debezium]}}\n"
    return {table.topic: entry}


def topic_entries(table: Table, keyed: Sequence[Keyed], partitions: int, prefix: str) -> dict[str, str]:
    """The entries of the topics file, by topic. Raises OnboardingError when the table's cannot be one beside others."""
    read = "stream-processor: [Read]"
    both = "stream-processor: [Read, Write, DescribeConfigs], query-service: [Read, DescribeConfigs]"
    edge = "ws-edge: [Write], query-service: [Read, DescribeConfigs]"
    channels = '{cleanup.policy: "compact,delete", retention.ms: "172800000"}'
    dead = f"{table.topic}{_DEAD_LETTER}"
    if not is_topic_name(dead):
        text = (
            f"{len(table.topic)} characters, and may have {MAX_TOPIC}, because {_DEAD_LETTER} is added for dead letters"
        )
        raise OnboardingError(f"the topic {table.topic} has {text}: shorten it, or the --topic-prefix")
    edges = [prefix + topic for topic in _EDGE_TOPICS]
    if table.topic in edges:
        raise OnboardingError(f"the topic {table.topic} is the edges' own: name another --topic")
    if not table.topic.startswith(prefix):
        text = f"the topic {table.topic} does not begin with {prefix}, and neither would that of its dead letters"
        raise OnboardingError(f"{text}: correct the --topic-prefix, or the --topic, or the --kafka-prefix")
    entries = {table.topic: _topic(table.topic, partitions, DELETE, f"debezium: [Write], {read}")}
    entries[dead] = _topic(dead, 1, DEAD_LETTERS, "stream-processor: [Read, Write, DescribeConfigs]")
    entries |= {each.topic: _topic(each.topic, partitions, "{cleanup.policy: compact}", both) for each in keyed}
    for name, config in zip(edges, (channels, "{cleanup.policy: compact}"), strict=True):
        entries[name] = _topic(name, 4, config, edge)
    return entries


def _topic(name: str, partitions: int, config: str, access: str) -> str:
    return f"  - name: {in_yaml(name)}\n    partitions: {partitions}\n    config: {config}\n    access: {{{access}}}\n"


def query_store_entries(keyed: Sequence[Keyed], owner: str | None, group: str | None) -> dict[str, str]:
    """The entries of the query service's stores file, by store."""
    entries = {}
    for each in keyed:
        owned = f", owner: {in_yaml(owner)}" if owner and readers(each.shape, owner, group) != "staff" else ""
        name, topic = in_yaml(each.name), in_yaml(each.topic)
        entries[each.name] = f"  - {{name: {name}, topic: {topic}, message: {each.message}{owned}}}\n"
    return entries


def edge_store_entries(keyed: Sequence[Keyed], owner: str | None, group: str | None) -> dict[str, str]:
    """The entries of the edge's stores file, by store. Without an owner, staff alone see the rows."""
    entries = {}
    for each in keyed:
        rule = readers(each.shape, owner, group)
        keeps = "members" if each.shape == "members" else "one"
        fields = (f"name: {in_yaml(each.name)}", f"message: {each.message}", f"keeps: {keeps}", f"owner: {rule}")
        entries[each.name] = f"  - {fields[0]}\n" + "".join(f"    {field}\n" for field in fields[1:])
    return entries


def topic_prefix(url: str, wanted: str, former: Mapping[str, str], kafka_prefix: str) -> str:
    """The prefix of the table's topic: that of the `former` settings, or else the wanted one; empty for the default.
    Behind a `kafka_prefix` it is the database's name.

    Raises OnboardingError when the former one reads another database, or has another prefix than the wanted one. A
    wanted prefix that is the same says that it is the same server, which Connect may reach by another name.
    """
    prefix = former.get("topic.prefix", "")
    if not prefix:
        return wanted or (f"{kafka_prefix}{_address(url)[1]}" if kafka_prefix else "")
    hostname, database = _address(url)
    compared = {"topic.prefix": wanted or prefix, "database.dbname": database}
    if not wanted:
        compared["database.hostname"] = hostname
    for name, value in compared.items():
        if former.get(name, value) != value:
            same = f", or confirm with --topic-prefix {prefix} that it is one server" if "hostname" in name else ""
            raise OnboardingError(
                f"connector.json has {name} {former[name]}, not {value}: take another --out for another connector{same}"
            )
    return prefix


def _address(url: str) -> tuple[str, str]:
    """The host and the database that the URL names."""
    parts = _parts(url)
    return parts.hostname or "127.0.0.1", unquote(parts.path.removeprefix("/")) or "postgres"


def _parts(url: str) -> SplitResult:
    """The parts of the URL, whose port is a number. Raises OnboardingError for what psycopg takes beside such URLs."""
    if not url.startswith(("postgres://", "postgresql://")):
        raise OnboardingError("the database is no URL: write postgres://user:password@host/name")
    try:
        parts = urlsplit(url)
        single = "," not in parts.netloc.rpartition("@")[2] and parts.port != 0
    except ValueError:  # the port is no number
        single = False
    if not single:
        raise OnboardingError("the URL of the database must name one host and one port")
    return parts


def connector(url: str, name: str, topic: str, former: ConnectorFile | None) -> str:
    """The connector's file. A new one is the configuration as `PUT /connectors/NAME/config` takes it.

    A `former` one keeps its form and what somebody has edited, and gets the table beside those that it has; without a
    list it reads all tables, and goes on doing so.
    """
    schema, table = split_name(name)
    file = former or ConnectorFile({})
    config = dict(file.config or _new_connector(url, topic.removesuffix(topic_of("", schema, table))))
    tables = include_entries(settings_of(config))
    if tables or not file.config:
        config[TABLES] = ",".join(dict.fromkeys([*tables, include_entry(f"{schema}.{table}")]))
    return file.text_with(config)


def _new_connector(url: str, prefix: str) -> dict[str, str]:
    parts, (hostname, database) = _parts(url), _address(url)
    identifier = "".join(sign if sign.isalnum() else "_" for sign in prefix.lower())
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": hostname,
        "database.port": str(parts.port or 5432),
        "database.user": unquote(parts.username or "postgres"),
        "database.password": PASSWORD_REFERENCE,
        "database.dbname": database,
        "topic.prefix": prefix,
        "slot.name": f"statecast_{identifier}"[:63],
        "publication.name": f"statecast_{identifier}"[:63],
        "publication.autocreate.mode": "filtered",
        "table.include.list": "",
        "decimal.handling.mode": "string",
        "interval.handling.mode": "string",
        "skipped.operations": "t",
        "tombstones.on.delete": "true",
        "poll.interval.ms": "50",
        "key.converter": converter,
        "key.converter.schemas.enable": "false",
        "value.converter": converter,
        "value.converter.schemas.enable": "true",
    }
