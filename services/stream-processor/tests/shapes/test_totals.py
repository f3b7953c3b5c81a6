"""Running totals in a route's records: random histories with disorder and crashes, and a real kill."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from threading import Thread
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from statecast.sales.v1.invoice_pb2 import InvoiceChange
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from testkit.stream_processor.changes import LOYALTY_OF_CHANGES, invoice_change
from testkit.stream_processor.loyalty import Loyalty, Notifications, invoice_of, loyalty_history
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import Record, count_records, read_topic

BATCHES = 4
CARDS = 12
PIPELINE = "loyalty-notifications"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def shipped(shipped: PipelineOf) -> PipelineOf:
    """Gives shipped pipelines of invoices, with changes as their source."""
    return partial(shipped, **LOYALTY_OF_CHANGES)


def by_card(records: list[Record]) -> Notifications:
    notifications: Notifications = defaultdict(list)
    for record in records:
        notifications[record.key.decode()].append(LoyaltyNotification.FromString(record.value or b""))
    return dict(notifications)


def sent(changes: list[InvoiceChange], chance: Random) -> list[InvoiceChange]:
    """Returns the changes as read from several partitions: near each other in the wrong order, some of them twice."""
    repeated = [*changes, *chance.sample(changes, len(changes) // 5)]
    places = {id(change): place for place, change in enumerate(changes)}
    return sorted(repeated, key=lambda change: places[id(change)] + chance.randrange(25))


@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_each_record_says_the_total_then_and_says_it_again_after_a_crash(
    shipped: PipelineOf, batches_of: BatchesOf, chance: Random
) -> None:
    history = list(loyalty_history(chance, changes=150, invoices=14, cards=3))
    batches = pieces(sent(history, chance), BATCHES)
    crash = chance.randrange(BATCHES)
    played = batches_of(shipped(PIPELINE))
    for batch in batches:
        played.add([each.SerializeToString() for each in batch])
    played.run(crash_at=crash)
    played.run()

    loyalty, wanted = Loyalty(), Notifications()
    for number, batch in enumerate(batches):
        wanted_of_batch = loyalty.tell(batch)
        for _ in range(2 if number == crash else 1):
            for card, notifications in wanted_of_batch.items():
                wanted.setdefault(card, []).extend(notifications)
    assert by_card(played.written) == wanted


@pytest.mark.long
def test_a_correction_counts_from_then_on(shipped: PipelineOf, batches_of: BatchesOf) -> None:
    first, second, third = (invoice_of(f"i{number}", "card", 1_000) for number in (1, 2, 3))
    corrected, moved = invoice_of("i1", "card", 3_000), invoice_of("i2", "other", 1_000)
    totals: list[list[tuple[str, str, int]]] = []
    played = batches_of(shipped(PIPELINE))
    for batch in (
        [(None, first), (None, second)],
        [(first, corrected), (second, moved)],
        [(None, third)],
        [(corrected, None), (third, None)],
        [(None, invoice_of("i4", "card", 200))],
    ):
        start = 10 * len(totals) + 1
        played.add(invoice_change(*rows, sequence=start + at).SerializeToString() for at, rows in enumerate(batch))
        before = len(played.written)
        played.run()
        notifications = by_card(played.written[before:])
        totals.append(
            [(each.invoice_number, card, each.total_points) for card in notifications for each in notifications[card]]
        )

    assert totals == [[("i1", "card", 10), ("i2", "card", 20)], [], [("i3", "card", 40)], [], [("i4", "card", 2)]]


def test_an_update_that_is_passed_on_says_the_total_with_it(shipped: PipelineOf, batches_of: BatchesOf) -> None:
    totals = {"total_points": "count(*)"}
    pipeline = shipped(PIPELINE, keep={"route": {"operations": ["update"], "totals": totals}})
    first, second = invoice_of("i1", "card", 1_000), invoice_of("i2", "card", 1_000)
    played = batches_of(pipeline)
    changes = [(None, first), (None, second), (second, second), (first, invoice_of("i1", "other", 1))]
    played.add(invoice_change(*rows, sequence=at).SerializeToString() for at, rows in enumerate(changes, 1))
    played.run()

    points = {card: [each.total_points for each in received] for card, received in by_card(played.written).items()}
    assert points == {"card": [2], "other": [1]}


@pytest.mark.kafka
@pytest.mark.long
def test_kills_change_no_total_that_was_told(
    kafka: str, create_topics: Callable[..., None], start_processor: ProcessorOf
) -> None:
    prefix = f"{uuid4().hex[:8]}."
    create_topics(prefix, "invoices", "invoices.dead-letter", PIPELINE)
    processor = start_processor(prefix, LOYALTY_OF_CHANGES, named=[f"invoices/{PIPELINE}"])
    history = list(loyalty_history(Random(3), changes=4_000, invoices=600, cards=CARDS))
    loyalty, entered = Loyalty(), set[tuple[str, int]]()
    processor.start()
    for part in pieces(history, 3):
        processor.wait_ready()
        flow = Thread(target=send, args=(kafka, f"{prefix}invoices", part))
        known = count_records(kafka, prefix + PIPELINE)
        flow.start()
        wait_until(lambda: count_records(kafka, prefix + PIPELINE) > known, lambda: processor.log)  # noqa: B023
        processor.kill()
        processor.start()
        flow.join()
        entered |= {version(each) for notifications in loyalty.tell(part).values() for each in notifications}
    totals_now = partial(read_totals, kafka, prefix + PIPELINE)
    wait_until(lambda: totals_now().keys() >= entered, lambda: f"{len(totals_now())} of {len(entered)}")
    probes = {f"card-{number}": invoice_of(f"probe-{number}", f"card-{number}", 100) for number in range(CARDS)}
    send(kafka, f"{prefix}invoices", [invoice_change(None, row, 9_999) for row in probes.values()])
    wait_until(
        lambda: len(totals_now()) == len(entered) + CARDS, lambda: f"{len(totals_now())} of {len(entered) + CARDS}"
    )

    totals = totals_now()
    assert {each for each, said in totals.items() if len(said) > 1} == set()
    assert totals.keys() == entered | {(row.invoice_number, 100) for row in probes.values()}
    for card, row in probes.items():
        assert totals[row.invoice_number, 100] == {loyalty.points(card) + 1}


def version(notification: LoyaltyNotification) -> tuple[str, int]:
    return notification.invoice_number, notification.total_amount_cents


def read_totals(bootstrap: str, topic: str) -> dict[tuple[str, int], set[int]]:
    """By version of an invoice, the totals that its records say."""
    totals: dict[tuple[str, int], set[int]] = defaultdict(set)
    for notifications in by_card(read_topic(bootstrap, topic)).values():
        for each in notifications:
            totals[version(each)].add(each.total_points)
    return dict(totals)


def send(bootstrap: str, topic: str, changes: Sequence[InvoiceChange]) -> None:
    """Sends changes under their stores, slowly, and every tenth twice."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number, each in enumerate(changes):
        row = each.after if each.HasField("after") else each.before
        for _ in range(2 if number % 10 == 0 else 1):
            producer.produce(topic, key=row.store_id.encode(), value=each.SerializeToString())
        producer.poll(0.002)
    producer.flush()
