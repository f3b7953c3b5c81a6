"""The topics file declares the topics as the services expect them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

import statecast
import ws_edge.channels
import ws_edge.settings
from cdc_simulator.domains import choose_domain, domain_names
from kafka_topics.acls import acls
from kafka_topics.topics_file import Topic, read_topics
from query_service.server.shard_listing import listed
from query_service.settings import SHIPPED_STORES
from query_service.storage.stores_file import read_stores
from statecast.descriptors import MessageTypes
from statecast_domains.derivation import Derivation, derive
from statecast_domains.derived_files import stores_text, topics_text
from statecast_domains.directories import pipeline_files
from statecast_domains.domain import read_domains
from statecast_domains.pipeline_file import PipelineFile, read
from stream_processor.pipeline.fields import Contract
from stream_processor.run.plan import access_of
from stream_processor.shapes import read as read_pipeline
from stream_processor.steps.dead_letters import DEFAULT_MAX_BYTES, HEADERS_BYTES
from ws_edge.model.listed_stores import store_of

ROOT = Path(__file__).resolve().parents[2]
TOPICS: dict[str, Topic] = {topic.name: topic for topic in read_topics(ROOT / "infra" / "kafka" / "topics.yaml")}
PIPELINES: dict[str, PipelineFile] = {file.stem: read(file) for file in pipeline_files([ROOT / "domains"])}
KEPT = {pipeline.sink.topic: pipeline for pipeline in PIPELINES.values() if pipeline.keep.shape != "route"}
"""The pipelines that keep something, by their keyed topics."""
STORES = {store.name: store for store in read_stores(SHIPPED_STORES)}
KEYED = {name: store for name, store in STORES.items() if store.format == "state-record"}
OWN_OF_EDGES = {store.name: store for store in ws_edge.channels.EDGE_STORES.values()}


README = ROOT / "infra" / "kafka" / "README.md"


def messages_of_the_contract() -> set[str]:
    files = descriptor_pb2.FileDescriptorSet.FromString(statecast.descriptor_set()).file
    return {f"{file.package}.{message.name}" for file in files for message in file.message_type}


@pytest.mark.parametrize("domain", domain_names())
def test_the_simulator_writes_to_declared_topics(domain: str) -> None:
    tables = choose_domain(domain).tables

    assert {table.topic for table in tables} <= set(TOPICS)
    assert {f"{table.topic}.dead-letter" for table in tables} <= set(TOPICS)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_reads_and_writes_declared_topics(name: str) -> None:
    pipeline = PIPELINES[name]

    assert pipeline.sink.topic in TOPICS
    for source in pipeline.sources.values():
        assert {source.topic, f"{source.topic}.dead-letter"} <= TOPICS.keys()
    assert {join.topic for join in pipeline.joins} <= TOPICS.keys()


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipelines_name_is_its_files_and_its_message_is_in_the_contract(name: str) -> None:
    assert PIPELINES[name].name == name
    assert {source.message for source in PIPELINES[name].sources.values()} <= messages_of_the_contract()


@pytest.mark.parametrize("name", [name for name in TOPICS if name.endswith(".dead-letter")])
def test_a_dead_letter_topic_has_room_for_the_largest_record_and_the_letters_own_headers(name: str) -> None:
    largest = int(TOPICS[name.removesuffix(".dead-letter")].config.get("max.message.bytes", DEFAULT_MAX_BYTES))

    assert int(TOPICS[name].config["max.message.bytes"]) == largest + HEADERS_BYTES


def test_a_keyed_topic_is_compacted() -> None:
    assert KEPT.keys() <= {name for name, topic in TOPICS.items() if topic.config.get("cleanup.policy") == "compact"}


def test_every_keyed_topic_is_a_store_of_its_name() -> None:
    assert {name: store.topic for name, store in KEYED.items()} == {topic: topic for topic in KEPT}


def test_a_store_holds_the_message_that_its_pipeline_writes() -> None:
    contract = Contract(statecast.descriptor_set())
    pipelines = [read_pipeline(file, contract) for file in pipeline_files([ROOT / "domains"])]
    written = {each.sink_topic: each.sink.full_name for each in pipelines if each.sink_topic in KEPT}

    assert {store.topic: store.message for store in KEYED.values()} == written


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (ROOT / "infra" / "kafka" / "topics.yaml", topics_text),
        (SHIPPED_STORES, stores_text),
    ],
    ids=["topics", "stores"],
)
def test_what_is_made_of_the_domains_is_current(file: Path, text: Callable[[Derivation], str]) -> None:
    """If this fails, run `make reference`."""
    assert file.read_text() == text(derive(read_domains([ROOT / "domains"])))


def test_edges_can_show_every_keyed_store() -> None:
    for store in KEYED.values():
        assert store_of(listed(store), MessageTypes.read()).kind == store.message


def test_what_edges_keep_is_a_plain_store_on_a_compacted_topic() -> None:
    plain = {name: store for name, store in STORES.items() if store.format == "plain"}

    assert {name: store.message.DESCRIPTOR.full_name for name, store in OWN_OF_EDGES.items()} == {
        name: store.message for name, store in plain.items()
    }
    for name, store in plain.items():
        assert (store.topic, store.partitioner) == (name, "murmur2")
        assert "compact" in TOPICS[name].config["cleanup.policy"].split(",")


def test_a_channel_ends_before_its_records_do() -> None:
    lifetime_ms = ws_edge.settings.Settings.model_fields["channel_lifetime_s"].default * 1000

    assert lifetime_ms < (STORES["push-channels"].retain_ms or 0) <= int(TOPICS["push-channels"].config["retention.ms"])


def test_each_store_is_read_as_its_pipeline_keeps_it() -> None:
    keeps = {name: store.keeps for name, store in KEYED.items()}

    for topic, pipeline in KEPT.items():
        # A window is a member of its group.
        kept = "members" if pipeline.keep.members or pipeline.window else "one"
        assert keeps[topic] == kept


def test_all_shards_of_the_shipped_stores_can_be_spread_over_two_instances_and_the_bookings_over_nine() -> None:
    counts = {name: TOPICS[store.topic].partitions for name, store in STORES.items()}

    assert counts.pop("bookings-by-customer") == TOPICS["bookings"].partitions == 9
    assert set(counts.values()) == {4}


def test_each_service_may_do_to_topics_what_it_needs_and_no_more() -> None:
    contract = Contract(statecast.descriptor_set())
    files = pipeline_files([ROOT / "domains"])
    needed: dict[str, dict[str, set[str]]] = {
        "stream-processor": access_of([read_pipeline(file, contract) for file in files])
    }
    tables = [table for domain in domain_names() for table in choose_domain(domain).tables]
    needed["cdc-simulator"] = {table.topic: {"Write"} for table in tables}
    needed["query-service"] = {store.topic: {"Read", "DescribeConfigs"} for store in STORES.values()}
    needed["ws-edge"] = {name: {"Write"} for name in OWN_OF_EDGES}
    needed["statecast-jobs"] = {"job-runs": {"Read", "Write"}}

    for service, access in needed.items():
        assert {name: set(topic.access[service]) for name, topic in TOPICS.items() if service in topic.access} == access


def test_the_readme_lists_the_acls_of_the_file() -> None:
    rows = []
    for acl in acls(list(TOPICS.values())):
        names = "all" if acl.service == "kafka-topics" else ", ".join(f"`{name}`" for name in acl.names)
        rows.append(f"| `{acl.service}` | {', '.join(acl.operations)} | {acl.kind}s | {names} |")

    assert [line for line in README.read_text().splitlines() if line in rows] == rows, "\n".join(rows)
