"""The rows of the query benchmark, written to a keyed topic as fast as the broker takes them."""

from confluent_kafka import Producer

from statecast.state.v1.state_pb2 import StateRecord

PAYLOAD_BYTES = 180
"""About an order with two items."""
POLL_EVERY = 1_000
FLUSH_S = 120.0


def key_of(number: int) -> str:
    """The key of a row, from 0."""
    return f"row-{number:08d}"


def producer(bootstrap: str, linger_ms: float = 50) -> Producer:
    """A producer that spreads keys as the processor does."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": linger_ms,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 200_000,
        }
    )


def write(bootstrap: str, topic: str, count: int, sequence: int) -> None:
    """Writes one record for each of the first `count` rows. Raises TimeoutError when the broker does not take them."""
    sender = producer(bootstrap)
    for number in range(count):
        _produce(sender, topic, key_of(number).encode(), encoded(number, sequence))
        if not number % POLL_EVERY:
            sender.poll(0)
    left = sender.flush(FLUSH_S)
    if left:
        raise TimeoutError(f"{topic}: {left} records were not written within {FLUSH_S:g} s")


def encoded(number: int, sequence: int) -> bytes:
    """A StateRecord with a payload that differs from row to row and from sequence to sequence."""
    text = f"{number:08d} {sequence} ".encode()
    record = StateRecord(epoch=1, sequence=sequence, payload=text.ljust(PAYLOAD_BYTES, b"x"))
    record.source.commit_time.seconds = 1_700_000_000 + sequence
    return record.SerializeToString()


def _produce(sender: Producer, topic: str, key: bytes, value: bytes) -> None:
    try:
        sender.produce(topic, value, key)
    except BufferError:  # the broker is behind
        sender.flush(FLUSH_S)
        sender.produce(topic, value, key)
