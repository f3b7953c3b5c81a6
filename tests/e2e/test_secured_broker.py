"""A broker with TLS, SASL and ACLs: every service signs in, does its work, and names each operation it is denied."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from drivers.secured_stack import SecuredStack, grant

from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.sales.v1.store_pb2 import StoreChange
from statecast.state.v1.state_pb2 import StateRecord
from testkit.secured_broker import SecuredBroker, secured_broker
from testkit.service_process import ServiceProcess
from testkit.topics import read_topic
from testkit.waiting import eventually, wait_until

pytestmark = pytest.mark.timeout(600)

START_S = 120.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured-broker")) as broker:
        grant(broker)
        yield broker


@pytest.fixture(scope="module")
def stack(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredStack]:
    """The services signed in by password, on the topics that `kafka-topics` has made; nothing runs yet."""
    stack = SecuredStack(tmp_path_factory.mktemp("by-password"), broker, broker.with_password)
    made = stack.kafka_topics()
    assert made.returncode == 0, made.stderr
    yield stack
    stack.close()


@pytest.fixture(scope="module")
def running(stack: SecuredStack) -> SecuredStack:
    for process in (stack.simulator, stack.processor, stack.query, stack.edge):
        process.start()
    for process in (stack.simulator, stack.processor, stack.query, stack.edge):
        process.wait_ready(START_S)
    return stack


def test_a_change_reaches_a_socket_when_all_sign_in_by_password(running: SecuredStack) -> None:
    order_id, frame = eventually(lambda: seen_from(running, ""), timeout_s=60)

    assert order_id in frame
    assert running.revoke("customer-0099")
    assert "password-of-" not in running.logs()


def test_a_job_handles_each_row_with_no_more_than_its_acls(running: SecuredStack, broker: SecuredBroker) -> None:
    eventually(lambda: seen_from(running, ""), timeout_s=60)
    ended = running.each_local("orders-by-key", "true")

    assert ended.returncode == 0, ended.stderr
    assert "run all-of-them of orders-by-key complete" in ended.stdout
    assert " 0 handled" not in ended.stdout
    with broker.without("statecast-jobs", "Describe", "group", "statecast-jobs"):
        refused = running.each_local("orders-by-key", "true")
    assert refused.returncode == 3
    assert "the ACLs of Kafka do not allow Describe on the group statecast-jobs" in refused.stderr


@pytest.mark.long
def test_passwords_are_changed_while_the_services_run(running: SecuredStack, broker: SecuredBroker) -> None:
    before = running.newest_order()
    for service in ("cdc-simulator", "stream-processor", "query-service", "ws-edge"):
        broker.set_password(service, f"newer-password-of-{service}")
    # Connections outlive a password; none outlives its broker.
    broker.stop()
    broker.start()
    after, _ = eventually(lambda: seen_from(running, before), timeout_s=90)

    assert after > before
    assert eventually(lambda: running.revoke("customer-0098"))
    assert running.processor.running
    running.processor.stop()
    running.simulator.stop()


@pytest.mark.long
def test_a_change_is_joined_and_served_when_all_show_certificates(broker: SecuredBroker, tmp_path: Path) -> None:
    stack = SecuredStack(tmp_path, broker, broker.with_certificate)
    assert stack.kafka_topics().returncode == 0
    stack.simulator = stack.new_simulator("invoices")
    stack.processor = stack.new_processor("invoices-with-store")
    try:
        for process in (stack.simulator, stack.processor, stack.query, stack.edge):
            process.start()
        stack.simulator.wait_ready()
        fill_table(broker)
        for process in (stack.simulator, stack.processor, stack.query, stack.edge):
            process.wait_ready(START_S)
        wait_until(lambda: any(joined(broker)), stack.logs)

        assert eventually(lambda: seen_from(stack, ""))
        assert stack.revoke("customer-0097")
    finally:
        stack.close()


def seen_from(stack: SecuredStack, older: str) -> tuple[str, str]:
    """Returns the newest order that came after `older`, as a lookup and a socket show it."""
    order_id = stack.newest_order()
    assert order_id > older, f"nothing came after {older!r}\n{stack.logs()[-4000:]}"
    assert stack.order(order_id)["data"]["order_id"] == order_id
    return order_id, stack.first_frame(order_id)


def fill_table(broker: SecuredBroker) -> None:
    """Writes the keyed topic of the stores, which is joined, as its pipeline would."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for record in read_topic(broker.bootstrap, "stores"):
        store = StoreChange.FromString(record.value or b"").after
        value = StateRecord(epoch=1, sequence=record.offset + 1, payload=store.SerializeToString())
        producer.produce("stores-by-key", value.SerializeToString(), store.store_id)
    assert producer.flush(30) == 0


def joined(broker: SecuredBroker) -> Iterator[bool]:
    """Yields whether each invoice on the topic was found with its store."""
    for record in read_topic(broker.bootstrap, "invoices-with-store"):
        if record.value is not None:
            row = InvoiceWithStore.FromString(StateRecord.FromString(record.value).payload)
            yield row.HasField("store")


REFUSALS = [
    ("simulator", "cdc-simulator", "Write", "topic", "orders"),
    ("processor", "stream-processor", "Read", "topic", "orders"),
    ("processor", "stream-processor", "Write", "topic", "orders-by-key"),
    ("processor", "stream-processor", "DescribeConfigs", "topic", "orders.dead-letter"),
    ("processor", "stream-processor", "Read", "topic", "orders.dead-letter"),
    ("processor", "stream-processor", "Read", "group", "stream-processor"),
    ("query", "query-service", "Read", "topic", "orders-by-key"),
    ("query", "query-service", "Read", "group", "query-service"),
]


@pytest.mark.long
@pytest.mark.parametrize(("part", "service", "operation", "kind", "name"), REFUSALS)
def test_a_service_with_one_acl_less_says_which(
    stack: SecuredStack, broker: SecuredBroker, part: str, service: str, operation: str, kind: str, name: str
) -> None:
    process: ServiceProcess = getattr(stack, part)
    process.close()
    with broker.without(service, operation, kind, name):
        process.start()
        said = f"the ACLs of Kafka do not allow {operation} on the {kind} {name}"
        wait_until(lambda: said in process.log, process.log_tail, timeout_s=30)

        assert process.unready_reason() is not None
    process.close()


def test_an_edge_that_may_not_write_says_so(stack: SecuredStack, broker: SecuredBroker) -> None:
    with broker.without("ws-edge", "Write", "topic", "revoked-consumers"), pytest.raises(AssertionError) as refused:
        stack.edge.run_command("revoke", "customer-0096")

    assert "the ACLs of Kafka do not allow Write on the topic revoked-consumers" in str(refused.value)


def test_kafka_topics_that_may_not_create_says_so(stack: SecuredStack, tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text("topics: [{name: nobody-may-create-it, partitions: 1}]")
    refused = stack.kafka_topics(file)

    assert refused.returncode == 1
    assert "the ACLs of Kafka do not allow Create on the topic nobody-may-create-it" in refused.stderr


def test_a_wrong_password_is_logged_and_not_shown(stack: SecuredStack, tmp_path: Path) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("hunter2")
    stack.query.close()
    before = len(stack.query.log)
    stack.query.start(kafka_sasl_password_location=wrong)
    said = "kafka refuses the connection"
    wait_until(lambda: said in stack.query.log[before:], stack.query.log_tail, timeout_s=30)
    stack.query.close()

    assert "Authentication failed" in stack.query.log[before:]
    assert "hunter2" not in stack.query.log
