"""Facts of the services that compose files and charts must fit: settings, ports, and the variables of images."""

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic_settings import BaseSettings

import cdc_simulator.settings
import query_service.settings
import stream_processor.settings
import ws_edge.settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = {
    name: container
    for name, container in yaml.safe_load((ROOT / "infra" / "compose.yaml").read_text())["services"].items()
    if "profiles" not in container
}
"""The containers that compose.yaml starts without a profile."""
POSTGRES_SOURCE: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "compose.postgres.yaml").read_text())["services"]
"""The differences from compose.yaml, and the additions, with PostgreSQL as the source."""
SETTINGS: dict[str, type[BaseSettings]] = {
    "cdc-simulator": cdc_simulator.settings.Settings,
    "stream-processor": stream_processor.settings.Settings,
    "query-service": query_service.settings.Settings,
    "ws-edge": ws_edge.settings.Settings,
}


def variables_of_image(service: str) -> dict[str, str]:
    """Returns the variables of a service's settings that its Dockerfile sets."""
    image = (ROOT / "services" / service / "Dockerfile").read_text()
    prefix = service.upper().replace("-", "_")
    return {name: value.strip('"') for name, value in re.findall(rf"({prefix}_\w+)=(\S+)", image)}


def ports_of(service: str) -> set[str]:
    """Returns those on which a service listens by its own defaults."""
    fields = SETTINGS[service].model_fields.items()
    return {str(field.default) for name, field in fields if name == "port" or name.endswith("_port")}


def in_compose(service: str) -> dict[str, Any]:
    """Returns the container of that name, or the first of its instances."""
    containers = {**POSTGRES_SOURCE, **COMPOSE}
    name = "topics" if service.startswith("kafka-topics") else service
    container: dict[str, Any] = containers.get(name) or containers[f"{service}-1"]
    return container
