"""Stand-ins for third-party images where no registry can be reached, and additions to the compose file for tests.

A stand-in obeys the settings of the replaced image in compose.yaml: its name, variables, volumes, ports and sysctls.
"""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import envoy  # type: ignore[import-untyped]  # the package ships no types

import kong_envoy
from testkit import kubernetes
from testkit.broker import LIBS
from testkit.containers.compose_file import ComposeFile, Container

STAND_INS = Path(kubernetes.__file__).with_name("stand_ins")
KAFKA_DIRECTORY = "/opt/kafka"
GATEWAY_PACKAGES = "/opt/gateway"


def with_ports_of_this_machine(compose: ComposeFile, kafka_port: int) -> ComposeFile:
    """Returns the file with free ports in place of fixed ones, and Kafka on a port of 127.0.0.1 for the test."""
    services = {}
    for name, container in compose.services.items():
        ports = tuple(dict.fromkeys(f"127.0.0.1::{port.rpartition(':')[2]}" for port in container.ports))
        services[name] = container.model_copy(update={"ports": ports})
    services["kafka"] = _with_listener(services["kafka"], kafka_port)
    return compose.model_copy(update={"services": services})


def kafka_from_jars(kafka: Container, processor: Container) -> Container:
    """Returns the same broker from Maven's jars, in a container with the processor's Java."""
    return kafka.model_copy(
        update={
            "image": processor.image,
            "user": "0",  # as in Kafka's image, the volume's directory must be the broker's
            "entrypoint": ("sh", f"{KAFKA_DIRECTORY}/start.sh"),
            "volumes": (
                *kafka.volumes,
                f"{LIBS}:{KAFKA_DIRECTORY}/libs:ro",
                f"{STAND_INS}/kafka/start.sh:{KAFKA_DIRECTORY}/start.sh:ro",
            ),
        }
    )


def kong_from_envoy(kong: Container, edge: Container, directory: Path) -> Container:
    """Returns Envoy with Kong's file as `kong-envoy` renders it, in a container of the edge's image for its Python."""
    entrypoint = directory / "docker-entrypoint.sh"
    entrypoint.write_text('#!/bin/sh\nexec "$@"\n')
    entrypoint.chmod(0o755)
    packages = [f"{home_of(each)}:{GATEWAY_PACKAGES}/{each.__name__}:ro" for each in (kong_envoy, envoy)]
    program = f"{STAND_INS}/kong/kong.py:/usr/local/bin/kong:ro"
    return kong.model_copy(
        update={
            "image": edge.image,
            "environment": {**kong.environment, "PYTHONPATH": GATEWAY_PACKAGES},
            "volumes": (*kong.volumes, *packages, program, f"{entrypoint}:/docker-entrypoint.sh:ro"),
        }
    )


def home_of(package: ModuleType) -> Path:
    """Returns the directory of a package that is installed here."""
    [path] = package.__path__
    return Path(path)


def _with_listener(kafka: Container, port: int) -> Container:
    """Returns the broker with one more listener, which is told to clients as a port of 127.0.0.1."""
    more: Mapping[str, str] = {
        "KAFKA_LISTENERS": f"HOST://0.0.0.0:{port}",
        "KAFKA_ADVERTISED_LISTENERS": f"HOST://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "HOST:PLAINTEXT",
    }
    added = {name: f"{kafka.environment[name]},{value}" for name, value in more.items()}
    environment = {**kafka.environment, **added}
    return kafka.model_copy(update={"environment": environment, "ports": (f"127.0.0.1:{port}:{port}",)})
