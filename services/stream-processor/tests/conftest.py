"""Shares fixtures of the stream-processor's tests: its contract, its pipelines, and one real Spark session."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

import statecast
from statecast_domains.directories import pipeline_files
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.session import start_session
from stream_processor.settings import Settings
from stream_processor.steps.functions import Functions
from testkit.ports import free_ports
from testkit.repository_files import DOMAINS
from testkit.stream_processor.micro_batches import BatchesOf, MicroBatches, PipelineOf
from testkit.stream_processor.one_batch import OneBatch
from testkit.stream_processor.pipeline_files import write_prefixed
from testkit.stream_processor.process import Processor, ProcessorOf


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of one test."""
    return Metrics(CollectorRegistry())


@pytest.fixture(scope="session")
def contract() -> Contract:
    """The contract that is installed."""
    return Contract(statecast.descriptor_set())


@pytest.fixture(scope="session")
def extended(contract: Contract) -> Contract:
    """A later contract, with a field more of an order, of a store and of an invoice with its store."""
    files = FileDescriptorSet.FromString(contract.descriptor_set)
    for message in [each for file in files.file for each in file.message_type]:
        if message.name in ("Order", "Store", "InvoiceWithStore"):
            field = message.field.add(name="later", number=1000, type=FieldDescriptorProto.TYPE_STRING)
            field.label = FieldDescriptorProto.LABEL_OPTIONAL
    return Contract(files.SerializeToString())


@pytest.fixture(scope="session")
def shipped(contract: Contract) -> PipelineOf:
    """Gives a shipped pipeline by name, with keys of its file replaced: `shipped("orders-by-key", where="...")`.

    Its store is left out, unless it is replaced: its readers would have to fit other keys.
    """

    def read(name: str, /, **replaced: object) -> Pipeline:
        content = yaml.safe_load(next(DOMAINS.rglob(f"{name}.yaml")).read_text())
        content.pop("store", None)
        return shapes.check(f"{name}.yaml", PipelineFile.model_validate({**content, **replaced}), contract)

    return read


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A real Spark session, for batches; it keeps the generated code of the queries of all tests."""
    session = start_session(Settings(driver_memory="2g"), "local[2]")
    session.conf.set("spark.sql.shuffle.partitions", 2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def functions(spark: SparkSession, contract: Contract) -> Functions:
    """The Java functions of that session."""
    return Functions(spark, contract)


@pytest.fixture(scope="session")
def batch(spark: SparkSession, functions: Functions) -> OneBatch:
    """Records as one batch of that session, through the steps of a pipeline."""
    return OneBatch(spark, functions)


@pytest.fixture
def batches_of(tmp_path: Path, batch: OneBatch) -> BatchesOf:
    """Makes micro-batches that run in that session."""
    return lambda pipeline: MicroBatches(tmp_path / uuid4().hex, pipeline, batch.spark, batch.functions)


@pytest.fixture
def start_processor(tmp_path: Path, kafka: str) -> Iterator[ProcessorOf]:
    """Makes a processor of the orders' pipelines, or of `named` ones: `start_processor(prefix, drain_s="5")`.

    Its topics are the files' topics after the prefix; keys of all files can be replaced with `replaced`. `more` files
    run beside them.
    """
    processors: list[Processor] = []

    def make(
        prefix: str,
        replaced: dict[str, object] | None = None,
        more: Iterable[Path] = (),
        named: Iterable[str] = ("orders/*",),
        **settings: str,
    ) -> Processor:
        shipped_files = pipeline_files(sorted(file for name in named for file in DOMAINS.glob(f"{name}.yaml")))
        files = [prefixed(file, tmp_path, prefix, replaced or {}) for file in [*shipped_files, *more]]
        processors.append(Processor(tmp_path, kafka, free_ports(1)[0], files, **settings))
        return processors[-1]

    yield make
    for each in processors:
        each.close()


@pytest.fixture
def processor_of(tmp_path: Path, processor_of_files: ProcessorOf) -> ProcessorOf:
    """Makes a processor of one pipeline, given by the content of its file, with settings of its own."""

    def make(content: Mapping[str, Any], **settings: str) -> Processor:
        file = tmp_path / f"{content['name']}.yaml"
        file.write_text(yaml.safe_dump(dict(content)))
        return processor_of_files(file, **settings)

    return make


@pytest.fixture
def processor_of_files(tmp_path: Path, kafka: str) -> Iterator[ProcessorOf]:
    """Makes a processor of pipeline files, with settings of its own."""
    with ExitStack() as ends:

        def make(*files: Path, **settings: str) -> Processor:
            return ends.enter_context(closing(Processor(tmp_path, kafka, free_ports(1)[0], files, **settings)))

        yield make


@pytest.fixture
def write_pipeline() -> Callable[[str, Path, str], Path]:
    """Writes the file of a shipped pipeline, by name, into a directory, with its topics after a prefix."""
    return lambda name, directory, prefix: prefixed(next(DOMAINS.rglob(f"{name}.yaml")), directory, prefix, {})


def prefixed(file: Path, directory: Path, prefix: str, replaced: dict[str, object]) -> Path:
    """Writes the pipeline file anew with other topics."""
    content = yaml.safe_load(file.read_text())
    content.pop("store", None)  # its readers would have to fit the replaced keys
    return write_prefixed(directory / file.name, content | replaced, prefix)


@pytest.fixture
def create_topics(kafka: str) -> Callable[..., None]:
    """Creates the topics of the orders' pipelines and `more` after a prefix."""

    def create(prefix: str, *more: str) -> None:
        admin = AdminClient({"bootstrap.servers": kafka})
        counts = {"orders": 4, "orders.dead-letter": 1}
        counts |= dict.fromkeys(("orders-by-key", "orders-by-customer", "orders-by-item", *more), 4)
        new = [NewTopic(prefix + name, num_partitions=count, replication_factor=1) for name, count in counts.items()]
        for result in admin.create_topics(new).values():
            result.result()

    return create


@pytest.fixture
def prefix(create_topics: Callable[..., None]) -> str:
    """A prefix of its own, with the topics of the orders' pipelines after it."""
    prefix = f"{uuid4().hex[:8]}."
    create_topics(prefix)
    return prefix
