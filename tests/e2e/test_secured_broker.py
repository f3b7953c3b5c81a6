"""A broker with TLS, SASL and ACLs: every service signs in, does its work, and says what it may not do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers.secured_stack import SecuredStack, grant

from statecast.sales.v1.invoice_with_store_pb2 import InvoiceWithStore
from statecast.state.v1.state_pb2 import StateRecord
from testkit.secured_broker import SecuredBroker, secured_broker
from testkit.service_process import ServiceProcess
from testkit.topics import read_topic
from testkit.waiting import eventually, wait_until

pytestmark = pytest.mark.timeout(600)

ORDER = "order-000001"
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
    order = eventually(lambda: running.order(ORDER), timeout_s=60)

    assert order["data"]["order_id"] == ORDER
    assert ORDER in running.first_frame(ORDER)
    assert running.revoke("customer-0099").is_success
    assert "password-of-" not in running.logs()


def test_passwords_are_changed_while_the_services_run(running: SecuredStack, broker: SecuredBroker) -> None:
    before = running.order(ORDER)
    for service in ("cdc-simulator", "stream-processor", "query-service", "ws-edge"):
        broker.set_password(service, f"newer-password-of-{service}")
    # Connections outlive a password; none outlives its broker.
    broker.stop()
    broker.start()
    wait_until(lambda: running.order(ORDER)["data"] != before["data"], running.logs, timeout_s=90)

    assert running.revoke("customer-0098").is_success
    assert running.processor.running
    running.processor.stop()
    running.simulator.stop()


def test_a_change_is_joined_and_served_when_all_show_certificates(broker: SecuredBroker, tmp_path: Path) -> None:
    stack = SecuredStack(tmp_path, broker, broker.with_certificate)
    assert stack.kafka_topics().returncode == 0
    stack.simulator = stack.new_simulator("invoices")
    stack.processor = stack.new_processor("stores-by-key", "invoices-with-store")
    try:
        for process in (stack.simulator, stack.processor, stack.query, stack.edge):
            process.start()
        for process in (stack.simulator, stack.processor, stack.query, stack.edge):
            process.wait_ready(START_S)
        wait_until(lambda: any(joined(broker)), stack.logs)

        assert stack.order(ORDER)["data"]["order_id"] == ORDER
        assert stack.revoke("customer-0097").is_success
    finally:
        stack.close()


def joined(broker: SecuredBroker) -> Iterator[bool]:
    """Whether each invoice on the topic was found with its store."""
    for record in read_topic(broker.bootstrap, "invoices-with-store"):
        if record.value is not None:
            row = InvoiceWithStore.FromString(StateRecord.FromString(record.value).payload)
            yield row.HasField("store")


REFUSALS = [
    ("simulator", "cdc-simulator", "Write", "topic", "orders"),
    ("processor", "stream-processor", "Read", "topic", "orders"),
    ("processor", "stream-processor", "Write", "topic", "orders-by-key"),
    ("processor", "stream-processor", "DescribeConfigs", "topic", "orders.dead-letter"),
    ("query", "query-service", "Read", "topic", "orders-by-key"),
    ("query", "query-service", "Read", "group", "query-service"),
]


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
