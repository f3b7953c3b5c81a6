"""The manifests of other domains than the orders: a simulator each, and a processor that runs all pipelines."""

import re
from pathlib import Path

import pytest
import yaml
from kubernetes_manifests import K8S, MANIFESTS, ROOT, every, labels_of_pods, read, selects

from cdc_simulator.domains import domain_names

DIRECTORY = K8S / "domains"
FILES = {file.stem: file for file in DIRECTORY.glob("*.yaml")}
PATCH = DIRECTORY / "patches" / "stream-processor.yaml"
OF_ORDERS = K8S / "cdc-simulator.yaml"


def without_comments(file: Path) -> str:
    return re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE)


def test_every_domain_but_the_orders_has_a_simulator() -> None:
    assert set(FILES) == set(domain_names()) - {"orders"}


@pytest.mark.parametrize("domain", FILES)
def test_a_simulator_differs_from_that_of_the_orders_in_its_name_and_its_domain(domain: str) -> None:
    text = without_comments(FILES[domain])
    renamed = re.sub(rf"cdc-simulator-{domain}\b", "cdc-simulator", text)

    assert renamed.replace(f"            - {{name: CDC_SIMULATOR_DOMAIN, value: {domain}}}\n", "") == without_comments(
        OF_ORDERS
    )
    assert text.count(f"cdc-simulator-{domain}") == without_comments(OF_ORDERS).count("cdc-simulator") - 2
    assert f"CDC_SIMULATOR_DOMAIN, value: {domain}" in text


@pytest.mark.parametrize("domain", FILES)
def test_a_simulator_reaches_the_broker(domain: str) -> None:
    [labels] = labels_of_pods(read(iter([FILES[domain]])))
    policies = {each["metadata"]["name"]: each["spec"] for each in every("NetworkPolicy", MANIFESTS)}
    peers = [peer["podSelector"] for peer in policies["kafka"]["ingress"][0]["from"] if "podSelector" in peer]

    assert selects(policies["kafka-clients"]["podSelector"], labels)
    assert any(selects(peer, labels) for peer in peers)


def test_the_processor_runs_all_domains_with_more_memory() -> None:
    [container] = yaml.safe_load(PATCH.read_text())["spec"]["template"]["spec"]["containers"]
    [processor] = [each for each in every("StatefulSet", MANIFESTS) if each["metadata"]["name"] == "stream-processor"]
    [patched] = processor["spec"]["template"]["spec"]["containers"]

    assert container["name"] == patched["name"]
    assert container["args"] == ["run", "/domains"]
    assert "COPY domains /domains" in (ROOT / "services" / "stream-processor" / "Dockerfile").read_text()
    assert container["env"] == [{"name": "STREAM_PROCESSOR_DRIVER_MEMORY", "value": "4g"}]
