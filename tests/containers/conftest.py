"""The stack of compose.yaml in containers of this project's images, and its clients."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from drivers.gateway_client import Gateway, GatewayClient
from drivers.order_source import OrderSource

from testkit.containers.compose_file import ComposeFile, read_compose_file
from testkit.containers.engine import Engine, NoEngineError, find_engine
from testkit.containers.images import COMPOSE_FILE, MB, build_images, missing_bases
from testkit.containers.stack import ContainerStack, running_containers
from testkit.containers.stand_ins import kafka_from_jars, kong_from_envoy, with_ports_of_this_machine
from testkit.ports import free_port

STAND_INS = os.environ.get("STAND_INS", "kafka kong").split()


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The container engine. Tests are skipped only if it or a base image is missing."""
    try:
        engine = find_engine()
    except NoEngineError as error:
        pytest.skip(str(error))
    if missing := missing_bases(read_compose_file(COMPOSE_FILE, os.environ), engine):
        pytest.skip(f"{engine.program} has no {' and no '.join(missing)}: see infra/images/README.md")
    return engine


@pytest.fixture(scope="session")
def images(engine: Engine, figures: list[str]) -> None:
    """Builds the images that are not up to date."""
    for image, took_s in build_images(engine):
        size = engine.size_bytes(image) / MB
        figures.append(f"{image:40} {size:6.0f} MB, built or found in {took_s:.0f} s")


@pytest.fixture(scope="session")
def kafka_port() -> int:
    """The port of 127.0.0.1 on which the stack's broker is reached."""
    return free_port()


@pytest.fixture(scope="session")
def compose(kafka_port: int, tmp_path_factory: pytest.TempPathFactory) -> ComposeFile:
    """compose.yaml without any variable, with stand-ins for the images of others that STAND_INS names."""
    bases = {name: value for name, value in os.environ.items() if name.endswith("_IMAGE")}
    compose = with_ports_of_this_machine(read_compose_file(COMPOSE_FILE, bases), kafka_port)
    services = dict(compose.services)
    if "kafka" in STAND_INS:
        services["kafka"] = kafka_from_jars(services["kafka"], services["stream-processor"])
    if "kong" in STAND_INS:
        directory = tmp_path_factory.mktemp("stand-ins")
        services["kong"] = kong_from_envoy(services["kong"], services["ws-edge-1"], directory)
    return compose.model_copy(update={"services": services})


@pytest.fixture(scope="session")
def stack(engine: Engine, images: None, compose: ComposeFile, figures: list[str]) -> Iterator[ContainerStack]:
    """The running stack; a test that ends a container starts it again."""
    project = f"statecast-test-{uuid4().hex[:6]}"
    with running_containers(ContainerStack(engine, project, compose, COMPOSE_FILE.parent)) as stack:
        for name, seconds in stack.ready_s.items():
            figures.append(f"{name:20} ready after {seconds:5.1f} s")
        yield stack


@pytest.fixture(scope="session")
def gateway(stack: ContainerStack, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """The stack's gateway, with the certificate that the stack has made for itself."""
    certificate = tmp_path_factory.mktemp("tls") / "certificate.pem"
    certificate.write_text(stack.read("kong", "/run/gateway/tls/certificate.pem"))
    address = stack.published("kong", 8443)
    return Gateway(f"https://{address}", f"wss://{address}", str(certificate))


@pytest.fixture
def alice(gateway: Gateway) -> GatewayClient:
    """The phone of customer-0001."""
    return GatewayClient(gateway, {"apikey": "alice-demo-key"})


@pytest.fixture(scope="session")
def source(stack: ContainerStack, kafka_port: int) -> OrderSource:
    """A source that sends the test's own changes."""
    return OrderSource(f"127.0.0.1:{kafka_port}")


@pytest.fixture
def order_id(source: OrderSource, alice: GatewayClient) -> str:
    """An order of alice's that has been placed and can be read."""
    order_id = source.place("customer-0001", {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed", timeout_s=60)
    return order_id
