"""The containers fit the services: every name that compose.yaml uses exists where it is meant to."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from pydantic_settings import BaseSettings
from service_facts import ports_of, variables_of_image

import cdc_simulator.settings
import query_service.settings
import stream_processor.settings
import ws_edge.settings
from cdc_simulator.domains import domain_names
from testkit.containers.compose_file import read_compose_file

INFRA = Path(__file__).resolve().parents[2] / "infra"
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text())
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
KONG: dict[str, Any] = yaml.safe_load((INFRA / "kong" / "kong.yaml").read_text())
SETTINGS: dict[str, type[BaseSettings]] = {
    "CDC_SIMULATOR_": cdc_simulator.settings.Settings,
    "STREAM_PROCESSOR_": stream_processor.settings.Settings,
    "QUERY_SERVICE_": query_service.settings.Settings,
    "WS_EDGE_": ws_edge.settings.Settings,
}
BUILT = {name: values for name, values in CONTAINERS.items() if "build" in values}
JOBS = {"credentials", "topics"}
OURS = {name: values for name, values in BUILT.items() if name not in JOBS}
"""The containers of the services; others run a command that ends."""
OF_DOMAINS = {f"cdc-simulator-{domain}": domain for domain in domain_names() if domain != "orders"}


def service_of(name: str) -> str:
    """Returns the service that the container is an instance of."""
    return "cdc-simulator" if name in OF_DOMAINS else re.sub(r"-\d+$", "", name)


def variables() -> Iterator[tuple[str, str, str]]:
    """Container, variable and value, for the variables of our own services."""
    for name, container in OURS.items():
        for variable, value in container["environment"].items():
            yield name, variable, filled_in(value)


def filled_in(value: str) -> str:
    """Returns the value with the defaults of its variables."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def dockerfile(container: dict[str, Any]) -> Path:
    build: dict[str, str] = container["build"]
    return (INFRA / build["context"] / build["dockerfile"]).resolve()


def volumes(container: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for volume in container.get("volumes", []):
        source, target = volume.split(":")[:2]
        yield source, target


def test_every_service_has_its_containers() -> None:
    assert set(OURS) == {
        "cdc-simulator",
        *OF_DOMAINS,
        "stream-processor",
        "query-service-1",
        "query-service-2",
        "ws-edge-1",
        "ws-edge-2",
    }


@pytest.mark.parametrize(("name", "domain"), OF_DOMAINS.items())
def test_a_profile_starts_the_simulator_of_a_domain(name: str, domain: str) -> None:
    of_orders, simulator = CONTAINERS["cdc-simulator"], CONTAINERS[name]
    own = {"profiles", "environment", "volumes"}

    assert simulator["profiles"] == [domain, "all"]
    assert simulator["environment"] == {**of_orders["environment"], "CDC_SIMULATOR_DOMAIN": domain}
    assert simulator["volumes"] == [f"{name}:/var/lib/cdc-simulator"]
    assert {key: value for key, value in simulator.items() if key not in own} == {
        key: value for key, value in of_orders.items() if key not in own
    }


def test_nothing_but_the_simulators_of_other_domains_waits_for_a_profile() -> None:
    assert {name for name, values in CONTAINERS.items() if "profiles" in values} == set(OF_DOMAINS)


def test_the_processor_runs_the_domains_that_it_is_given() -> None:
    processor, image = CONTAINERS["stream-processor"], dockerfile(CONTAINERS["stream-processor"]).read_text()

    assert processor["command"] == "run ${PIPELINES:-/domains/orders}"
    assert 'CMD ["run", "/domains/orders"]' in image
    assert "COPY domains /domains" in image


@pytest.mark.parametrize("name", BUILT)
def test_an_image_is_built_from_a_dockerfile_whose_base_images_can_be_replaced(name: str) -> None:
    defaults = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", dockerfile(BUILT[name]).read_text(), re.MULTILINE))

    assert BUILT[name]["build"]["args"] == {
        argument: f"${{{argument}:-{image}}}" for argument, image in defaults.items()
    }
    for line in re.findall(r"^FROM (\S+)", dockerfile(BUILT[name]).read_text(), re.MULTILINE):
        assert line in {f"${{{argument}}}" for argument in defaults}


@pytest.mark.parametrize("name", BUILT)
def test_a_container_of_ours_has_no_rights_and_cannot_change_its_image(name: str) -> None:
    assert BUILT[name]["read_only"] is True
    assert BUILT[name]["cap_drop"] == ["ALL"]
    assert BUILT[name]["security_opt"] == ["no-new-privileges:true"]
    assert re.search(r"^USER \d+$", dockerfile(BUILT[name]).read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "variable", "value"), list(variables()))
def test_a_variable_is_a_setting_of_its_service_with_a_good_value(name: str, variable: str, value: str) -> None:
    prefix = next(each for each in SETTINGS if variable.startswith(each))
    field = variable.removeprefix(prefix).lower()

    assert name.startswith(prefix.rstrip("_").lower().replace("_", "-"))
    assert field in SETTINGS[prefix].model_fields


@pytest.mark.parametrize("prefix", SETTINGS)
def test_the_services_accept_their_variables(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, container in OURS.items():
        if not name.startswith(prefix.rstrip("_").lower().replace("_", "-")):
            continue
        for variable, value in container["environment"].items():
            monkeypatch.setenv(variable, filled_in(value) or "what-only-the-container-knows")

        assert SETTINGS[prefix]().model_fields_set


@pytest.mark.parametrize("name", OURS)
def test_a_container_can_be_reached_and_checked(name: str) -> None:
    service = service_of(name)
    exposed = re.findall(r"^EXPOSE (.+)$", dockerfile(OURS[name]).read_text(), re.MULTILINE)
    [asked] = re.findall(r"127\.0\.0\.1:(\d+)/readyz", OURS[name]["healthcheck"]["test"][-1])
    hosts = {value for variable, value in variables_of_image(service).items() if variable.endswith("_HOST")}

    assert {port for ports in exposed for port in ports.split()} == ports_of(service)
    assert asked in ports_of(service)
    assert hosts == {"0.0.0.0"}


@pytest.mark.parametrize("name", [name for name in OURS if any(volumes(OURS[name]))])
def test_a_volume_lies_where_the_image_lets_its_user_write(name: str) -> None:
    values = variables_of_image(service_of(name)).values()
    read_only = {each.split(":")[1] for each in OURS[name]["volumes"] if each.endswith(":ro")}
    for target in {target for _, target in volumes(OURS[name])} - {"/tmp"} - read_only:
        assert target in dockerfile(OURS[name]).read_text()
        assert any(value.startswith(f"{target}/") for value in values)


@pytest.mark.parametrize("name", CONTAINERS)
def test_an_image_is_pinned_by_its_tag(name: str) -> None:
    assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+)+", CONTAINERS[name]["image"])


def test_what_a_container_waits_for_exists_and_can_be_waited_for() -> None:
    for container in CONTAINERS.values():
        for other, how in container.get("depends_on", {}).items():
            condition = how["condition"]

            assert other in CONTAINERS
            assert condition == "service_completed_successfully" or "healthcheck" in CONTAINERS[other]


def test_the_gateway_finds_all_instances_of_a_service_by_one_name() -> None:
    targets = {each["target"] for upstream in KONG["upstreams"] for each in upstream["targets"]}
    aliases = {name: values["networks"]["default"]["aliases"] for name, values in OURS.items() if "networks" in values}
    instances = {f"{service}-{number}": [service] for service in ("query-service", "ws-edge") for number in (1, 2)}

    assert aliases == instances
    assert {target.split(":")[0] for target in targets} == {"query-service", "ws-edge"}
    for target in targets:
        service, port = target.split(":")
        assert port in ports_of(service)


def test_the_edges_ask_the_query_service_where_it_listens() -> None:
    port = query_service.settings.Settings.model_fields["port"].default
    hosts = {values["environment"].get("QUERY_SERVICE_ADVERTISED_HOST") for values in OURS.values()} - {None}
    listening = {f"{host}:{port}" for host in hosts}
    for name in ("ws-edge-1", "ws-edge-2"):
        assert set(OURS[name]["environment"]["WS_EDGE_QUERY_ADDRESSES"].split(",")) == listening


def test_nobody_has_to_set_a_variable() -> None:
    for file in ("compose.yaml", "infra/compose.yaml"):
        assert ":?" not in re.sub("#.*", "", (INFRA.parent / file).read_text())


def test_the_stack_in_the_root_is_that_of_infra() -> None:
    root = yaml.safe_load((INFRA.parent / "compose.yaml").read_text())

    assert root == {"name": COMPOSE["name"], "include": ["infra/compose.yaml"]}


def test_the_gateway_and_the_edges_take_the_secret_that_is_set_or_the_one_that_was_made() -> None:
    edges = [OURS[name] for name in ("ws-edge-1", "ws-edge-2")]
    secrets = {each["environment"]["WS_EDGE_GATEWAY_SECRET"] for each in edges}
    places = {directory: volume for volume, directory in volumes(CONTAINERS["credentials"])}

    assert secrets == {CONTAINERS["kong"]["environment"]["GATEWAY_SECRET"]} == {"${GATEWAY_SECRET:-}"}
    assert CONTAINERS["credentials"]["entrypoint"][2:] == ["/run/gateway/secret", "/run/gateway/tls"]
    assert set(volumes(CONTAINERS["kong"])) >= {
        (volume, directory) for directory, volume in places.items() if "run" in directory
    }
    for edge in edges:
        assert dict(volumes(edge)) == {places["/run/gateway/secret"]: "/run/gateway"}
        assert "/run/gateway/secret" in edge["entrypoint"][-1]
    for container in (*edges, CONTAINERS["kong"]):
        assert container["depends_on"]["credentials"] == {"condition": "service_completed_successfully"}


def test_an_edge_is_started_as_its_image_starts_it() -> None:
    [entrypoint] = re.findall(r"^ENTRYPOINT (.+)$", dockerfile(OURS["ws-edge-1"]).read_text(), re.MULTILINE)
    [command] = re.findall(r"^CMD (.+)$", dockerfile(OURS["ws-edge-1"]).read_text(), re.MULTILINE)
    words = [*yaml.safe_load(entrypoint), *yaml.safe_load(command)]

    assert OURS["ws-edge-1"]["entrypoint"][-1].endswith(f"exec {' '.join(words)}")


def test_kong_gets_every_variable_that_its_file_reads() -> None:
    text = (INFRA / "kong" / "kong.yaml").read_text()
    referred = {name.upper().replace("-", "_") for name in re.findall(r"\{vault://env/([a-z-]+)\}", text)}
    read = set(re.findall(r'os\.getenv\("([A-Z_]+)"\)', text))
    environment = CONTAINERS["kong"]["environment"]

    assert referred | read <= set(environment)
    assert read == {environment["KONG_NGINX_MAIN_ENV"]}
    assert environment["KONG_UNTRUSTED_LUA_SANDBOX_ENVIRONMENT"] == "os.getenv"


def test_ports_of_this_machine_can_be_chosen() -> None:
    chosen = {"GATEWAY_HTTP_PORT": "18080", "GATEWAY_TLS_PORT": "18443", "GATEWAY_TLS_PORT_2": "18000"}
    published = {
        name: sorted(container.ports)
        for name, container in read_compose_file(INFRA / "compose.yaml", chosen).services.items()
        if container.ports
    }

    assert published == {"kong": ["127.0.0.1:18000:8443", "127.0.0.1:18080:8000", "127.0.0.1:18443:8443"]}


def test_the_secret_is_checked_before_the_gateway_and_the_edges_start() -> None:
    assert CONTAINERS["credentials"]["environment"]["GATEWAY_SECRET"] == "${GATEWAY_SECRET:-}"


def test_files_that_are_mounted_exist_and_volumes_are_declared() -> None:
    for container in CONTAINERS.values():
        for source, _ in volumes(container):
            assert (INFRA / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_the_broker_is_the_one_that_the_tests_run() -> None:
    pom = ElementTree.parse(INFRA / "local" / "kafka" / "pom.xml")
    versions = {element.text for element in pom.iter() if element.tag.endswith("version")}

    assert CONTAINERS["kafka"]["image"].partition(":")[2] in versions
