"""What runs in place of an image of others where no registry can be reached, and what a test needs beside the file.

A stand-in obeys what compose.yaml says to the image that it replaces: its name, variables, volumes, ports and sysctls.
"""

from collections.abc import Mapping
from pathlib import Path

from kong_envoy import envoy_command, load, render, to_yaml
from testkit.broker import LIBS
from testkit.containers.compose_file import ComposeFile, Container

KAFKA_SETTING = "KAFKA_"
KAFKA_DIRECTORY = "/opt/kafka"
GATEWAY_ADMIN = "127.0.0.1:8001"
KAFKA_CHECK = """
from confluent_kafka.admin import AdminClient
AdminClient({"bootstrap.servers": "kafka:9092"}).list_topics(timeout=2)
"""
OWN_PYTHON = ("CMD", "python", "-c")


def with_ports_of_this_machine(compose: ComposeFile, kafka_port: int) -> ComposeFile:
    """The file with free ports instead of its fixed ones, and Kafka on a port of 127.0.0.1 for a client of the test."""
    services = {}
    for name, container in compose.services.items():
        ports = tuple(f"127.0.0.1::{port.rpartition(':')[2]}" for port in container.ports)
        services[name] = container.model_copy(update={"ports": ports})
    services["kafka"] = _with_listener(services["kafka"], kafka_port)
    return compose.model_copy(update={"services": services})


def kafka_from_jars(kafka: Container, processor: Container, directory: Path) -> Container:
    """The same broker from Maven's jars, in a container with the processor's Java, set up as Kafka's image does it."""
    settings = {
        name.removeprefix(KAFKA_SETTING).lower().replace("_", "."): value
        for name, value in kafka.environment.items()
        if name.startswith(KAFKA_SETTING)
    }
    file = directory / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    file.chmod(0o644)
    java = f"java -Xmx512m -cp '{KAFKA_DIRECTORY}/libs/*'"
    properties = f"{KAFKA_DIRECTORY}/server.properties"
    formatted = f"{java} kafka.tools.StorageTool format --ignore-formatted -t $CLUSTER_ID -c {properties}"
    assert kafka.healthcheck is not None
    return kafka.model_copy(
        update={
            "image": processor.image,
            "user": "0",  # as in Kafka's image, the volume's directory must be the broker's
            "entrypoint": "sh",
            "command": ("-c", f"{formatted} && exec {java} kafka.Kafka {properties}"),
            "volumes": (*kafka.volumes, f"{LIBS}:{KAFKA_DIRECTORY}/libs:ro", f"{file}:{properties}:ro"),
            "healthcheck": kafka.healthcheck.model_copy(update={"test": (*OWN_PYTHON, KAFKA_CHECK)}),
        }
    )


def kong_from_envoy(kong: Container, edge: Container, kong_file: Path, directory: Path) -> Container:
    """Envoy with what `kong-envoy` renders of Kong's file, in a container of the edge's image, which has Python."""
    config = render(
        load(kong_file),
        environment=kong.environment,
        listen_http="127.0.0.1:8000",
        listen_https="127.0.0.1:8443",
        admin=GATEWAY_ADMIN,
    )
    for listener in config["static_resources"]["listeners"]:
        # What is rendered is for this machine alone; a container's own loopback cannot be reached from outside it.
        listener["address"]["socket_address"]["address"] = "0.0.0.0"
    file = directory / "envoy.yaml"
    file.write_text(to_yaml(config))
    file.chmod(0o644)  # the container's user is another; the directory is the owner's alone
    program, *flags = envoy_command(Path("/etc/envoy.yaml"))
    check = f"import urllib.request; urllib.request.urlopen('http://{GATEWAY_ADMIN}/ready', timeout=2)"
    assert kong.healthcheck is not None
    return kong.model_copy(
        update={
            "image": edge.image,
            "entrypoint": "/usr/local/bin/envoy",
            "command": tuple(flags),
            "environment": {},
            "volumes": (f"{program}:/usr/local/bin/envoy:ro", f"{file}:/etc/envoy.yaml:ro"),
            "healthcheck": kong.healthcheck.model_copy(update={"test": (*OWN_PYTHON, check)}),
        }
    )


def _with_listener(kafka: Container, port: int) -> Container:
    """The broker with one more listener, which is told to clients as a port of 127.0.0.1."""
    more: Mapping[str, str] = {
        "KAFKA_LISTENERS": f"HOST://0.0.0.0:{port}",
        "KAFKA_ADVERTISED_LISTENERS": f"HOST://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "HOST:PLAINTEXT",
    }
    added = {name: f"{kafka.environment[name]},{value}" for name, value in more.items()}
    environment = {**kafka.environment, **added}
    return kafka.model_copy(update={"environment": environment, "ports": (f"127.0.0.1:{port}:{port}",)})
