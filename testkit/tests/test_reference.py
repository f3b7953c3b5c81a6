"""Reference tables come from the code."""

import json
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Info
from pydantic import Field, SecretStr
from pydantic_settings import NoDecode, SettingsConfigDict

from statecast_service import errors
from statecast_service.settings import ServiceSettings
from testkit.reference import errors_table, main, metrics_table, schema_table, settings_table, stale_blocks


class Settings(ServiceSettings):
    """Settings of an imaginary service."""

    model_config = SettingsConfigDict(env_prefix="DEMO_")

    secret: SecretStr = Field(default=SecretStr("none"), description="A | B.")
    rate: float = Field(default=50.0, description="Changes a second.")
    names: Annotated[tuple[str, ...], NoDecode] = Field(default=("a", "b"), description="Names, with commas.")
    stores: Path = Field(default=Path("/opt/demo/stores.yaml"), description="The stores file.")
    tls_key: Path | None = Field(default=None, description="Its key.")


class Status(Enum):
    """Status codes in the form that gRPC has them."""

    UNAVAILABLE = 14


class Metrics:
    """Metrics in the form that a service has them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        Counter("demo_calls", "Calls, by method.", ["method"], registry=registry)
        Gauge("demo_lag", "Lag.", registry=registry)
        Info("demo_build", "The build.", registry=registry)


def test_settings_have_variable_default_and_meaning() -> None:
    lines = settings_table(Settings).splitlines()

    assert lines[:2] == ["| `DEMO_…` | default | meaning |", "| --- | --- | --- |"]
    assert "| `RATE` | `50` | Changes a second. |" in lines
    assert "| `NAMES` | `a,b` | Names, with commas. |" in lines
    assert "| `STORES` | `…/stores.yaml` | The stores file. |" in lines
    assert "| `TLS_KEY` |  | Its key. |" in lines
    assert r"| `SECRET` |  | A \| B. |" in lines


def test_keys_of_a_schema_have_their_path_and_default() -> None:
    inner = {"properties": {"size": {"type": "integer", "default": 3, "description": "Of a box."}}}
    row = {"type": "array", "items": {"$ref": "#/$defs/Box"}, "description": "All of them."}
    schema = {"$defs": {"Box": inner}, "properties": {"boxes": row, "name": {"type": "string"}}, "required": ["name"]}

    assert schema_table(lambda: json.dumps(schema)).splitlines()[2:] == [
        "| `boxes` |  | All of them. |",
        "| `boxes[].size` | `3` | Of a box. |",
        "| `name` | `required` |  |",
    ]


def test_errors_have_their_facts_and_the_first_paragraph_of_their_docstring() -> None:
    lines = errors_table(errors).splitlines()

    assert lines[0] == "| error | exit status | meaning |"
    assert "| `PortInUseError` | `2` | A port cannot be listened on. |" in lines


def test_errors_have_the_status_that_they_or_their_base_are_mapped_to() -> None:
    lines = errors_table(errors, {errors.SettingsError: Status.UNAVAILABLE}).splitlines()

    assert lines[0] == "| error | exit status | gRPC status | meaning |"
    assert "| `PortInUseError` | `2` |  | A port cannot be listened on. |" in lines
    assert any(line.startswith("| `SettingsError` | `2` | `UNAVAILABLE` |") for line in lines)


@pytest.mark.parametrize("metrics", [Metrics, Metrics(CollectorRegistry()), Metrics(CollectorRegistry()).registry])
def test_metrics_have_their_names_as_prometheus_reads_them(metrics: object) -> None:
    assert metrics_table(metrics).splitlines()[2:] == [
        "| `demo_calls_total` | counter | Calls, by method. |",
        "| `demo_lag` | gauge | Lag. |",
        "| `demo_build_info` | info | The build. |",
    ]


def test_a_stale_block_is_found_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("demo_metrics")
    module.__dict__["Metrics"] = Metrics
    monkeypatch.setitem(sys.modules, "demo_metrics", module)
    readme = tmp_path / "README.md"
    head = "<!-- generated: metrics demo_metrics:Metrics -->"
    readme.write_text(f"# Demo\n\n{head}\nold\n<!-- end -->\n\nThe rest.\n")
    stale = stale_blocks(readme)
    main([str(readme)])

    assert stale == [head]
    assert stale_blocks(readme) == []
    assert readme.read_text().startswith(f"# Demo\n\n{head}\n\n| metric | type | meaning |\n")
    assert readme.read_text().endswith("| The build. |\n\n<!-- end -->\n\nThe rest.\n")
