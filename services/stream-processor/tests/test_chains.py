"""Two pipelines in one process, through kills: the second reads the sink of the first as a table."""

from collections.abc import Iterator
from random import Random
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

PARTS, CHANGES = 2, 600
LONG = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]


def history() -> Iterator[OpenPositionChange]:
    """Changes of a few positions, which move between clients and exchanges, close and open again."""
    chance, rows = Random(4), dict[str, OpenPosition]()
    for sequence in range(1, CHANGES + 1):
        before = rows.pop(position_id := f"p-{chance.randrange(60):02}", None)
        if before is None or chance.random() > 0.2:
            exchange = chance.choice(["NASDAQ", "NASDAQ", "LON"])
            client, amount = f"client-{chance.randrange(5)}", chance.randrange(1, 9)
            rows[position_id] = OpenPosition(position_id=position_id, client=client, amount=amount, exchange=exchange)
        after = rows.get(position_id)
        envelope = change(before and order(), after and order(), sequence)
        yield OpenPositionChange(operation=envelope.operation, source=envelope.source, before=before, after=after)


def holders(changes: list[OpenPositionChange]) -> dict[str, ShareHolder]:
    """Returns the holdings of each client at the end."""
    rows = {(each.after if each.HasField("after") else each.before).position_id: each for each in changes}
    held: dict[str, ShareHolder] = {}
    for position_id in sorted(rows):
        row = rows[position_id].after
        if row.exchange == "NASDAQ":
            holder = held.setdefault(row.client, ShareHolder(client=row.client))
            holder.positions, holder.shares = holder.positions + 1, holder.shares + row.amount
            holder.position_ids.append(position_id)
    return held


@pytest.mark.long
def test_a_chain_that_starts_empty_ends_exact_through_kills(kafka: str, start_processor: ProcessorOf) -> None:
    prefix, changes = f"{uuid4().hex[:8]}.", list(history())
    for topic, config in {"open-positions": {}, "positions-by-key": LONG, "us-share-holders": LONG}.items():
        create_topic(kafka, prefix + topic, 2, config)
    for topic in ("open-positions.dead-letter", "positions-by-key.dead-letter"):
        create_topic(kafka, prefix + topic, 1)
    processor = start_processor(prefix, named=("positions/*",), checkpoint_interval="5s")
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})

    def read() -> dict[str, ShareHolder]:
        held = read_fenced(read_topic(kafka, f"{prefix}us-share-holders"))
        return {key: ShareHolder.FromString(state.payload) for key, state in held.items()}

    for part in range(PARTS):
        processor.start_ready()
        for each in changes[part * CHANGES // PARTS : (part + 1) * CHANGES // PARTS]:
            row = each.after if each.HasField("after") else each.before
            producer.produce(f"{prefix}open-positions", key=row.position_id.encode(), value=each.SerializeToString())
        producer.flush()
        if part < PARTS - 1:
            wait_until(lambda: len(read()) > 0, lambda: processor.log[-3000:])
            processor.kill()

    wanted = holders(changes)
    wait_until(lambda: read() == wanted, lambda: f"{read()} is not {wanted}: {processor.log[-3000:]}")
    assert processor.stop() == 0
