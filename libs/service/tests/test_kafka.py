"""Kafka clients log nothing themselves; they pass messages to a callback."""

import time

from confluent_kafka import KafkaError, Producer

from statecast_service.kafka import client_options


def test_a_client_tells_its_callback_that_no_broker_answers() -> None:
    errors: list[KafkaError] = []
    producer = Producer(client_options("127.0.0.1:1", errors.append))
    deadline = time.monotonic() + 10
    while not errors and time.monotonic() < deadline:
        producer.poll(0.1)

    assert errors
    assert not errors[0].fatal()


def test_the_options_may_go_without_a_callback() -> None:
    assert "error_cb" not in client_options("127.0.0.1:1")
