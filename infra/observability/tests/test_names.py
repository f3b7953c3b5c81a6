"""Metrics of rules and panels exist: a renamed one would make an alert silent."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

HERE = Path(__file__).parents[1]
SERVICES = ("cdc_simulator", "stream_processor", "query_service", "ws_edge")
PREFIXED = re.compile(rf"\b(?:{'|'.join(SERVICES)})_[a-z_]+")
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


def kinds() -> dict[str, str]:
    """Returns every metric that the services register, with its type."""
    classes = [import_module(f"{service}.metrics").Metrics for service in SERVICES]
    registries = [cls(CollectorRegistry()) if signature(cls).parameters else cls() for cls in classes]
    return {family.name: family.type for metrics in registries for family in metrics.registry.collect()}


def series(name: str, kind: str) -> set[str]:
    """Returns the names under which Prometheus stores the metric."""
    if kind == "histogram":
        return {name + suffix for suffix in OF_HISTOGRAMS}
    return {f"{name}_total"} if kind == "counter" else {name}


def rules() -> Iterator[dict[str, object]]:
    for group in yaml.safe_load((HERE / "alerts.yaml").read_text())["groups"]:
        yield from group["rules"]


def expressions() -> Iterator[str]:
    """Yields the queries of rules and panels."""
    yield from (str(rule["expr"]) for rule in rules())
    for panel in json.loads((HERE / "dashboard.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_metric_that_is_asked_for_exists(expression: str) -> None:
    known = {each for name, kind in kinds().items() for each in series(name, kind)}
    used = set(PREFIXED.findall(expression))

    assert used
    assert used <= known


@pytest.mark.parametrize("metric", ["query_service_settings_differ", "query_service_disk_bytes"])
def test_a_fault_that_nobody_feels_at_first_has_an_alert(metric: str) -> None:
    assert any(metric in PREFIXED.findall(str(rule["expr"])) for rule in rules())


def test_each_service_is_watched() -> None:
    queries = " ".join(expressions())

    assert {name.split("_")[0] for name in kinds()} == {name.split("_")[0] for name in PREFIXED.findall(queries)}


def test_each_alert_says_what_to_do() -> None:
    for rule in rules():
        annotations = rule["annotations"]

        assert isinstance(annotations, dict), rule["alert"]
        assert annotations.keys() == {"summary", "action"}, rule["alert"]
