"""On Kubernetes other domains than the orders are values: a simulator each, and the processor's directories."""

import pytest
from rendered_charts import WITH_ALL, every, values_of
from service_facts import ROOT

from cdc_simulator.domains import domain_names
from testkit.charts import CHARTS, render

OF_OTHERS = {f"cdc-simulator-{domain}": domain for domain in domain_names() if domain != "orders"}


@pytest.mark.parametrize(("name", "domain"), OF_OTHERS.items())
def test_a_simulator_differs_from_that_of_the_orders_in_its_name_and_its_domain(name: str, domain: str) -> None:
    simulators = {
        each["metadata"]["name"]: each
        for each in render(CHARTS["cdc-simulator"], {"domains": ["orders", domain]})
        if each["kind"] == "StatefulSet"
    }
    of_orders, other = values_of(simulators["cdc-simulator"]), values_of(simulators[name])

    assert other == of_orders | {"CDC_SIMULATOR_DOMAIN": domain}
    assert simulators.keys() == {"cdc-simulator", name}


def test_all_domains_are_played_when_all_are_named() -> None:
    names = {each["metadata"]["name"] for each in every("StatefulSet", WITH_ALL)}

    assert set(OF_OTHERS) <= names


def test_the_processor_runs_the_directories_that_are_named_and_those_of_a_config_map() -> None:
    values = {"pipelines": ["/domains/orders", "/domains/odds"], "pipelinesConfigMap": "mine"}
    [processor] = every("StatefulSet", render(CHARTS["stream-processor"], values))
    [of_orders] = every("StatefulSet", render(CHARTS["stream-processor"]))
    [container], [plain] = (each["spec"]["template"]["spec"]["containers"] for each in (processor, of_orders))

    assert plain["args"] == ["run", "/domains/orders"]
    assert container["args"] == ["run", "/domains/orders", "/domains/odds", "/etc/statecast/pipelines"]
    assert "COPY domains /domains" in (ROOT / "services" / "stream-processor" / "Dockerfile").read_text()
