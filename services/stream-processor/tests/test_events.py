"""Plain events, each of which counts: random histories through the real flow with crashes, against a plain model."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from statecast.sales.v1.customer_rewards_pb2 import CustomerRewards
from statecast.sales.v1.invoice_pb2 import CUSTOMER_TYPE_PRIME, Invoice
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.invoice_events import InvoiceEvent, invoice_events, without_duplicates
from testkit.stream_processor.micro_batches import BatchesOf, MicroBatches, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import Record, create_topic, read_topic

BATCHES = 3
INVOICE = "statecast.sales.v1.Invoice"
BY_NUMBER = {"deduplicate": {"by": "invoice_number", "within": "1h"}}
FORMS = st.sampled_from(["protobuf", "json"])
Play = Callable[[Pipeline, Sequence[Sequence[InvoiceEvent]], Random], MicroBatches]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def source(values: str, **more: object) -> dict[str, object]:
    return {"topic": "pos-invoices", "message": INVOICE, "format": "events", "values": values, **more}


def is_prime(row: Invoice) -> bool:
    return row.customer_type == CUSTOMER_TYPE_PRIME


@pytest.fixture
def play(batches_of: BatchesOf) -> Play:
    """Plays batches through the pipeline with a crash after one of them was written."""

    def play(pipeline: Pipeline, batches: Sequence[Sequence[InvoiceEvent]], chance: Random) -> MicroBatches:
        played = batches_of(pipeline)
        for batch in batches:
            played.add_placed(each.record(pipeline.definition.source.row_values or "") for each in batch)
        played.run(crash_at=chance.randrange(len(batches)))
        played.run()
        return played

    return play


def rewards(records: Iterable[Record]) -> dict[str, tuple[int, int]]:
    """By customer: invoices and cents."""
    states = {key: CustomerRewards.FromString(each.payload) for key, each in read_fenced(records).items()}
    return {key: (each.invoices, each.spent_cents) for key, each in states.items()}


def rewarded(events: Sequence[InvoiceEvent]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in (each.row for each in events if is_prime(each.row)):
        invoices, cents = sums[row.customer_card_no]
        sums[row.customer_card_no] = invoices + 1, cents + row.total_amount_cents
    return dict(sums)


@few_but_rich
@given(chance=st.randoms(use_true_random=False), values=FORMS)
def test_an_aggregate_counts_each_event_once_and_remembers_groups_alone(
    shipped: PipelineOf, play: Play, chance: Random, values: str
) -> None:
    events = invoice_events(chance)
    played = play(shipped("rewards-by-customer", source=source(values)), pieces(events, BATCHES), chance)

    assert rewards(played.written) == rewarded(events)
    assert played.state_rows == len(rewarded(events))
    prime = sum(is_prime(each.row) for each in events)
    assert played.outcomes == Counter(applied=prime, filtered=len(events) - prime)


@few_but_rich
@given(chance=st.randoms(use_true_random=False), values=FORMS)
def test_an_event_that_comes_again_within_the_time_is_a_duplicate(
    shipped: PipelineOf, play: Play, chance: Random, values: str
) -> None:
    batches = [[each for each in piece if is_prime(each.row)] for piece in pieces(invoice_events(chance), BATCHES)]
    played = play(shipped("rewards-by-customer", source=source(values, **BY_NUMBER)), batches, chance)

    counting = [event for batch in without_duplicates(batches) for event in batch]
    assert rewards(played.written) == rewarded(counting)
    duplicates = sum(map(len, batches)) - len(counting)
    assert played.outcomes == Counter(applied=len(counting), duplicate=duplicates)


@few_but_rich
@given(chance=st.randoms(use_true_random=False), values=FORMS)
def test_the_totals_of_events_add_up_in_the_order_of_their_places(
    shipped: PipelineOf,
    batches_of: BatchesOf,
    chance: Random,
    values: str,
) -> None:
    batches = pieces(invoice_events(chance), BATCHES)
    keep = {"route": {"totals": {"total_points": "sum(total_amount_cents div 100)"}}}
    pipeline = shipped("loyalty-notifications", source=source(values, **BY_NUMBER), keep=keep)
    played = batches_of(pipeline)
    crash = chance.randrange(BATCHES)
    for batch in batches:
        played.add_placed(each.record(values) for each in batch)
    played.run(crash_at=crash)
    played.run()

    points, wanted = Counter[str](), defaultdict[str, list[tuple[str, int]]](list)
    prime = [[each for each in batch if is_prime(each.row)] for batch in batches]
    for number, batch in enumerate(without_duplicates(prime)):
        passed = defaultdict[str, list[tuple[str, int]]](list)
        for row in (each.row for each in batch):
            points[row.customer_card_no] += row.total_amount_cents // 100
            passed[row.customer_card_no].append((row.invoice_number, points[row.customer_card_no]))
        for card, records in passed.items():
            wanted[card] += records * (2 if number == crash else 1)
    written = defaultdict[str, list[tuple[str, int]]](list)
    for record in played.written:
        each = LoyaltyNotification.FromString(record.value or b"")
        written[record.key.decode()].append((each.invoice_number, each.total_points))
    assert written == wanted


@few_but_rich
@given(chance=st.randoms(use_true_random=False), time=st.sampled_from([None, "created_at"]))
def test_latest_by_a_field_is_the_newest_event_of_all_partitions(
    shipped: PipelineOf, play: Play, chance: Random, time: str | None
) -> None:
    events = invoice_events(chance)
    chance.shuffle(events)  # as partitions are read in any order
    pipeline = shipped(
        "invoices-by-store", source=source("protobuf", time=time), group_by="customer_card_no", keep="latest"
    )
    played = play(pipeline, pieces(events, BATCHES), chance)

    def age(event: InvoiceEvent) -> tuple[object, ...]:
        return (event.row.created_at.ToNanoseconds() if time else event.time_ms), event.place

    rows = {key: Invoice.FromString(each.payload) for key, each in read_fenced(played.written).items()}
    assert rows == {each.row.customer_card_no: each.row for each in sorted(events, key=age)}
    assert played.state_rows == len(rows)


@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_members_are_all_events_of_their_group(shipped: PipelineOf, play: Play, chance: Random) -> None:
    events = invoice_events(chance)
    played = play(shipped("invoices-by-store", source=source("json")), pieces(events, BATCHES), chance)

    rows = [Invoice.FromString(each.payload) for each in read_fenced(played.written).values()]
    assert {row.invoice_number: row for row in rows} == {each.row.invoice_number: each.row for each in events}


@few_but_rich
@given(chance=st.randoms(use_true_random=False), repeated=st.booleans())
def test_a_route_passes_on_each_event(shipped: PipelineOf, play: Play, chance: Random, repeated: bool) -> None:
    batches = pieces(invoice_events(chance), BATCHES)
    pipeline = shipped("masked-lines", source=source("json", **({} if repeated else BY_NUMBER)))
    played = play(pipeline, batches, chance)

    counting = batches if repeated else list(without_duplicates(batches))
    least = Counter(each.row.store_id for batch in counting for each in batch for _ in each.row.lines)
    written = Counter(record.key.decode() for record in played.written)
    assert least <= written <= least + least  # at least once, and twice of the batch that had crashed
    assert played.outcomes.total() == sum(map(len, batches))


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("mode", ["realtime", "micro-batch"])
def test_a_kill_counts_no_event_twice_and_loses_none(
    tmp_path: Path, kafka: str, processor_of_files: ProcessorOf, mode: str
) -> None:
    prefix = f"{uuid4().hex[:8]}."
    # Which copy of an event is read first depends on the partitions, so all are within the time, and have one time.
    same = {"deduplicate": {"by": "invoice_number", "within": "30d"}, "time": "created_at"}
    read = {**source("json", **same), "topic": f"{prefix}pos-invoices"}
    trigger = {"mode": mode, "checkpoint": "5s"} if mode == "realtime" else {"mode": mode}
    shapes: dict[str, dict[str, object]] = {
        "rewards": {
            "keep": {"aggregate": {"invoices": "count(*)", "spent_cents": "sum(total_amount_cents)"}},
            "sink": {"topic": f"{prefix}rewards", "message": "statecast.sales.v1.CustomerRewards"},
        },
        "last": {"keep": "latest", "sink": {"topic": f"{prefix}last"}},
    }
    for topic, partitions in (("pos-invoices", 3), ("pos-invoices.dead-letter", 1), ("rewards", 4), ("last", 4)):
        # The events are of long ago.
        config = {"cleanup.policy": "compact"} if topic in shapes else {"retention.ms": "-1"}
        create_topic(kafka, prefix + topic, partitions, config)
    for name, shape in shapes.items():
        file = {"name": f"{prefix[:-1]}-{name}", "source": read, "group_by": "customer_card_no", **shape}
        prime = "customer_type = 'CUSTOMER_TYPE_PRIME'"
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({**file, "where": prime, "trigger": trigger}))
    events = invoice_events(Random(7), events=900)
    processor = processor_of_files(*(tmp_path / f"{name}.yaml" for name in shapes))
    processor.start()
    sent = list[InvoiceEvent]()
    for number, part in enumerate(pieces(events, 3)):
        processor.wait_ready()
        known = len(read_topic(kafka, f"{prefix}rewards"))
        send(kafka, f"{prefix}pos-invoices", part)
        sent += part
        wait_until(lambda: len(read_topic(kafka, f"{prefix}rewards")) > known, lambda: processor.log)  # noqa: B023
        if number < 2:
            processor.kill()
            processor.start()

    counting = list({each.row.invoice_number: each for each in sent}.values())
    expected = rewarded(counting)
    wait_until(lambda: rewards(read_topic(kafka, f"{prefix}rewards")) == expected, lambda: processor.log)
    rows = sorted((each.row for each in counting if is_prime(each.row)), key=lambda row: row.created_at.ToNanoseconds())
    newest = {row.customer_card_no: row for row in rows}

    def last() -> dict[str, Invoice]:
        states = read_fenced(read_topic(kafka, f"{prefix}last"))
        return {key: Invoice.FromString(each.payload) for key, each in states.items()}

    wait_until(lambda: last() == newest, lambda: processor.log)
    assert processor.stop() == 0


def send(bootstrap: str, topic: str, events: Sequence[InvoiceEvent]) -> None:
    """Sends events to their partitions with their times, slowly."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in events:
        record = each.record("json")
        producer.produce(topic, record.value, record.key, each.partition, timestamp=each.time_ms)
        producer.poll(0.002)
    producer.flush()
