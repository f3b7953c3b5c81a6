"""The system that follows from domains."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from statecast_domains.derivation import Derivation, derive
from statecast_domains.derived_files import stores_text, topics_text
from statecast_domains.domain import read_domains
from statecast_domains.errors import DomainFileError

BESIDE = """\
description: Sensors of a house.
topics:
  - {name: readings, partitions: 2, writers: [gateway], config: {max.message.bytes: "2000000"}}
  - {name: rooms, compacted: true}
"""
PIPELINE = """\
name: readings-by-sensor
source: {topic: readings, message: house.v1.ReadingChange}
group_by: sensor_id
keep: {members: {key: reading_id, sort: at}}
sink: {topic: readings-by-sensor, partitions: 2}
"""
ROUTE = """\
name: alarms
source: {topic: readings, message: house.v1.ReadingChange}
group_by: sensor_id
keep: route
sink: {topic: alarms}
"""


@pytest.fixture
def derived(tmp_path: Path) -> Callable[..., Derivation]:
    """Derives from one domain: `derived(domain_yaml, *pipelines)`."""

    def make(beside: str, *pipelines: str) -> Derivation:
        (tmp_path / "domain.yaml").write_text(beside)
        for index, pipeline in enumerate(pipelines):
            (tmp_path / f"p{index}.yaml").write_text(pipeline)
        return derive(read_domains([tmp_path]))

    return make


def test_a_topic_that_is_read_as_a_table_keeps_what_a_restart_reads(derived: Callable[..., Derivation]) -> None:
    chained = "name: chained\nsource: {topic: readings-by-sensor, message: house.v1.Reading, format: table}\n"
    rest = "group_by: room\nkeep: {members: {key: reading_id, sort: at}}\nsink: {topic: by-room}\n"

    topics = {topic.name: topic for topic in derived(BESIDE, PIPELINE, chained + rest).topics}

    assert topics["readings-by-sensor"].config["min.compaction.lag.ms"] == "86400000"
    assert "readings-by-sensor.dead-letter" in topics


def test_both_tables_of_a_join_keep_what_a_restart_reads(derived: Callable[..., Derivation]) -> None:
    join = """\
name: rooms-with-readings
source: {topic: rooms, message: house.v1.Room, format: table, values: json}
table_join: {topic: readings-by-sensor, message: house.v1.Reading, as: reading}
select: {room: row, reading: reading}
group_by: room_id
keep: latest
sink: {topic: rooms-with-readings, message: house.v1.RoomWithReading}
trigger: {mode: micro-batch}
"""
    topics = {topic.name: topic for topic in derived(BESIDE, PIPELINE, join).topics}

    for table in ("rooms", "readings-by-sensor"):
        assert topics[table].config["min.compaction.lag.ms"] == "86400000"
        assert {"Read", "DescribeConfigs"} <= set(topics[table].access["stream-processor"])
        assert f"{table}.dead-letter" in topics
    with pytest.raises(DomainFileError, match=r"p1.yaml: table_join.topic: no pipeline writes readings-by-senso,"):
        derived(BESIDE, PIPELINE, join.replace("{topic: readings-by-sensor,", "{topic: readings-by-senso,"))


def test_a_keyed_topic_keeps_what_a_replay_writes_again(derived: Callable[..., Derivation]) -> None:
    topics = {topic.name: topic for topic in derived(BESIDE, PIPELINE, ROUTE).topics}
    own = derived(
        BESIDE,
        PIPELINE.replace(
            "{topic: readings-by-sensor", '{config: {min.compaction.lag.ms: "7200000"}, topic: readings-by-sensor'
        ),
    )

    assert topics["readings-by-sensor"].config["min.compaction.lag.ms"] == "86400000"
    assert "min.compaction.lag.ms" not in topics["alarms"].config
    assert {each.name: each for each in own.topics}["readings-by-sensor"].config["min.compaction.lag.ms"] == "7200000"


def test_a_dead_letter_topic_takes_no_larger_records_than_kafka_can(derived: Callable[..., Derivation]) -> None:
    unlimited = BESIDE.replace("2000000", "2147483647")

    topics = {topic.name: topic for topic in derived(unlimited, PIPELINE).topics}

    assert topics["readings.dead-letter"].config["max.message.bytes"] == "2147483647"


@pytest.mark.parametrize("setting", ["max.message.bytes", "retention.ms"])
def test_a_setting_of_a_topic_in_bytes_or_milliseconds_is_a_whole_number(
    derived: Callable[..., Derivation], setting: str
) -> None:
    declared = BESIDE.replace('max.message.bytes: "2000000"', f"{setting}: 4MB")
    written = PIPELINE.replace("{topic: readings-by-sensor", f"{{config: {{{setting}: 4MB}}, topic: readings-by-sensor")

    with pytest.raises(DomainFileError, match=rf"domain\.yaml: topics\[0\]\.config: {setting} is 4MB.*whole number"):
        derived(declared, PIPELINE)
    with pytest.raises(DomainFileError, match=rf"p0\.yaml: sink\.config: {setting} is 4MB.*whole number"):
        derived(BESIDE, written)


def test_a_table_of_events_is_refused(derived: Callable[..., Derivation]) -> None:
    table = "name: by-key\nsource: {topic: rooms, message: house.v1.Room, format: table, values: json}\n"
    rest = "group_by: room_id\nkeep: latest\nsink: {topic: rooms-by-key}\n"
    derived(BESIDE, PIPELINE, table + rest)

    with pytest.raises(
        DomainFileError, match=r"source\.topic: rooms is read as a table and is not .*say source.format: ev"
    ):
        derived(BESIDE.replace("compacted: true", "compacted: false"), PIPELINE, table + rest)


def test_a_compacted_topic_of_changes_is_refused_but_for_routes(derived: Callable[..., Derivation]) -> None:
    compacted = BESIDE.replace("partitions: 2,", "partitions: 2, compacted: true,")

    assert derived(compacted, ROUTE).topics
    with pytest.raises(DomainFileError, match=r"source\.topic: readings is read as changes and is compacted"):
        derived(compacted, PIPELINE)


@pytest.mark.parametrize("keep", ["route", "latest"])
def test_events_may_vanish_with_time_and_not_by_compaction(derived: Callable[..., Derivation], keep: str) -> None:
    events = "name: alarms\nsource: {topic: readings, message: house.v1.Reading, format: events}\n"
    pipeline = f"{events}group_by: sensor_id\nkeep: {keep}\nsink: {{topic: alarms}}\n"

    topics = {topic.name: topic for topic in derived(BESIDE, pipeline).topics}
    assert topics["readings"].config["retention.ms"] == "604800000"
    assert {"Read", "DescribeConfigs"} <= set(topics["readings"].access["stream-processor"])
    with pytest.raises(DomainFileError, match=r"source\.topic: readings is read as events and is compacted .*vanish"):
        derived(BESIDE.replace("partitions: 2,", "partitions: 2, compacted: true,"), pipeline)


def test_topics_have_what_each_service_needs_of_them(derived: Callable[..., Derivation]) -> None:
    topics = {topic.name: topic for topic in derived(BESIDE, PIPELINE, ROUTE).topics}

    assert list(topics) == [
        *("readings", "readings.dead-letter", "rooms", "readings-by-sensor", "alarms"),
        *("push-channels", "revoked-consumers", "job-runs"),
    ]
    assert topics["readings"].access == {"gateway": ("Write",), "stream-processor": ("Read", "DescribeConfigs")}
    assert topics["readings"].config["retention.ms"] == "604800000"
    assert topics["readings.dead-letter"].config["max.message.bytes"] == "2016384"
    assert topics["rooms"].config == {"cleanup.policy": "compact"}
    assert topics["readings-by-sensor"].partitions == 2
    assert topics["readings-by-sensor"].access["query-service"] == ("Read", "DescribeConfigs")
    assert "query-service" not in topics["alarms"].access
    assert topics["job-runs"].access == {"statecast-jobs": ("Read", "Write")}
    assert topics["job-runs"].config == {"cleanup.policy": "delete", "retention.ms": "2592000000"}


def test_a_keyed_topic_is_a_store_for_staff_unless_it_says_otherwise(derived: Callable[..., Derivation]) -> None:
    said = (
        "store: {readers: {field: owner_id}, engine: memory, history: {age: 1h}, replicas: 3,"
        " private: [{path: code, owner: owner_id}], description: By sensor., interval: 5s}\n"
    )

    store, *_ = derived(BESIDE, PIPELINE, ROUTE).stores
    chosen, *_ = derived(BESIDE, PIPELINE + said).stores

    assert store.readers == "staff"
    assert store.entry == {
        "name": "readings-by-sensor",
        "topic": "readings-by-sensor",
        "message": "house.v1.Reading",
        "keeps": "members",
    }
    assert chosen.entry == {
        **store.entry,
        "description": "By sensor.",
        "interval": "5s",
        "readers": {"field": "owner_id"},
        "engine": "memory",
        "history": {"age": "1h"},
        "replicas": 3,
        "private": [{"path": "code", "owner": "owner_id"}],
    }


def test_a_plain_topic_is_served_as_it_is(derived: Callable[..., Derivation]) -> None:
    stores = """\
stores:
  - {name: rooms, topic: rooms, message: json, partitioner: crc32, retain: 24h, readers: everyone}
"""
    derivation = derived(BESIDE + stores, PIPELINE)

    by_name = {store.name: store for store in derivation.stores}
    assert by_name["rooms"].entry == {
        "name": "rooms",
        "topic": "rooms",
        "message": "json",
        "readers": "everyone",
        "partitioner": "crc32",
        "retain": "1d",
        "format": "plain",
    }


def test_the_topics_of_every_system_begin_with_the_prefix(derived: Callable[..., Derivation]) -> None:
    derivation = derived("topic_prefix: acme.\ntopics: [{name: readings}]", PIPELINE)

    assert [topic.name for topic in derivation.topics][-3:] == [
        *("acme.push-channels", "acme.revoked-consumers", "acme.job-runs")
    ]
    assert [(store.name, store.topic) for store in derivation.stores][-2:] == [
        ("push-channels", "acme.push-channels"),
        ("revoked-consumers", "acme.revoked-consumers"),
    ]


def test_each_file_is_yaml_with_what_was_derived(derived: Callable[..., Derivation]) -> None:
    derivation = derived(BESIDE, PIPELINE)

    assert yaml.safe_load(topics_text(derivation)) == {"topics": [each.entry for each in derivation.topics]}
    assert yaml.safe_load(stores_text(derivation)) == {"stores": [each.entry for each in derivation.stores]}


@pytest.mark.parametrize(
    ("beside", "pipelines", "problem"),
    [
        (BESIDE, [PIPELINE.replace("topic: readings,", "topic: reading,")], "p0.yaml: source.topic: .*mean readings?"),
        (BESIDE, [PIPELINE, ROUTE.replace("topic: alarms", "topic: readings-by-sensor")], "p1.yaml: sink.topic: .*p0"),
        (BESIDE, [PIPELINE, ROUTE.replace("name: alarms", "name: readings-by-sensor")], "p1.yaml: name: .*p0"),
        (f"{BESIDE}  - {{name: rooms}}", [PIPELINE], r"domain.yaml: topics\[2\].name: the topic rooms is also"),
        (f"{BESIDE}  - {{name: push-channels}}", [PIPELINE], "domain.yaml: every system has a topic push-channels"),
        (f"{BESIDE}  - {{name: job-runs}}", [PIPELINE], "domain.yaml: every system has a topic job-runs of its own"),
        (
            f"{BESIDE}stores: [{{name: a, topic: romms, message: json}}]",
            [PIPELINE],
            r"domain.yaml: stores\[0\].topic: .*did you mean rooms?",
        ),
        (
            f"{BESIDE}stores: [{{name: readings-by-sensor, topic: rooms, message: json}}]",
            [PIPELINE],
            r"domain.yaml: stores\[0\].name: there is another store",
        ),
        (
            f"{BESIDE}stores: [{{name: a, topic: alarms, message: json}}]",
            [ROUTE.replace("{topic: alarms}", "{topic: alarms, partition_by: level}")],
            r"domain.yaml: stores\[0\].topic: alarms is placed by sink.partition_by of .*p0.yaml, not by its keys",
        ),
    ],
)
def test_names_that_do_not_go_together_are_refused_with_file_and_key(
    derived: Callable[..., Derivation], beside: str, pipelines: list[str], problem: str
) -> None:
    with pytest.raises(DomainFileError, match=problem):
        derived(beside, *pipelines)


def test_two_domains_have_one_prefix(tmp_path: Path) -> None:
    for name, prefix in (("a", "acme."), ("b", "other.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "domain.yaml").write_text(f"topic_prefix: {prefix}")

    with pytest.raises(
        DomainFileError, match=r"b/domain.yaml: topic_prefix: is 'other.', and 'acme.' in .*a/domain.yaml"
    ):
        derive(read_domains([tmp_path]))
