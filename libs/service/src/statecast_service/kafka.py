"""The options that every client of librdkafka has."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError

MAX_RECONNECT_MS = 1000
METADATA_REFRESH_MS = 5000
REQUEST_TIMEOUT_MS = 10_000
"""A broker that accepts connections and says nothing is left after this, for the new leader of its partitions."""


def client_options(bootstrap: str, on_error: Callable[[KafkaError], None] | None = None) -> dict[str, Any]:
    """Returns the options to which a producer, a consumer or an admin client adds its own.

    The client writes nothing to standard error, and is back within a second of the broker. `on_error` gets what the
    client has to say, in the thread that polls it; most of it passes by itself, unless `error.fatal()`.
    """
    options = {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.max.ms": MAX_RECONNECT_MS,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "socket.timeout.ms": REQUEST_TIMEOUT_MS,
        "log_level": 0,  # what the client has to say comes as errors
    }
    return options if on_error is None else {**options, "error_cb": on_error}
