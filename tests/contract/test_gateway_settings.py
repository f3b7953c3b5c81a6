"""Kong's own settings go with the file that it reads, in every deployment."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rendered_charts import MANIFESTS

INFRA = Path(__file__).resolve().parents[2] / "infra"
REFERENCE = re.compile(r"\{vault://[^}]*\}")
FILE_OF_KONG = INFRA / "kong" / "kong.yaml"


def settings_in(node: Any) -> Iterator[dict[str, str]]:
    """Yields the variables `KONG_…` of each container in a document, of compose or of Kubernetes."""
    if isinstance(node, list):
        if named := {each["name"]: str(each.get("value")) for each in node if _is_setting(each)}:
            yield named
        for each in node:
            yield from settings_in(each)
    elif isinstance(node, dict):
        if named := {name: str(value) for name, value in node.items() if str(name).startswith("KONG_")}:
            yield named
        for each in node.values():
            yield from settings_in(each)


def _is_setting(node: Any) -> bool:
    return isinstance(node, dict) and str(node.get("name")).startswith("KONG_")


DOCUMENTS = {"compose.yaml": [yaml.safe_load((INFRA / "compose.yaml").read_text())], "chart": MANIFESTS}
DEPLOYMENTS = {
    name: settings for name, documents in DOCUMENTS.items() for each in documents for settings in settings_in(each)
}


def test_kong_is_configured_in_compose_and_on_kubernetes() -> None:
    assert DEPLOYMENTS.keys() == DOCUMENTS.keys()


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_no_reference_of_the_file_stands_in_kongs_own_settings(deployment: str) -> None:
    """Kong 3.9 takes its cached value of such a reference for a path: no client that names a host gets TLS."""
    in_file = set(REFERENCE.findall(FILE_OF_KONG.read_text()))
    in_settings = set(REFERENCE.findall(" ".join(DEPLOYMENTS[deployment].values())))

    assert in_file
    assert in_settings
    assert not in_file & in_settings


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_the_certificate_for_clients_without_a_host_name_is_that_of_the_file(deployment: str) -> None:
    [certificate] = yaml.safe_load(FILE_OF_KONG.read_text())["certificates"]
    settings = DEPLOYMENTS[deployment]

    assert _variable(settings["KONG_SSL_CERT"]) == _variable(certificate["cert"])
    assert _variable(settings["KONG_SSL_CERT_KEY"]) == _variable(certificate["key"])


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_plugins_see_as_many_headers_as_can_be_set(deployment: str) -> None:
    assert DEPLOYMENTS[deployment]["KONG_LUA_MAX_REQ_HEADERS"] == "1000"


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_kongs_own_answers_do_not_say_what_runs(deployment: str) -> None:
    """The response-transformer of the file sees only answers that come from an upstream."""
    assert set(DEPLOYMENTS[deployment]["KONG_HEADERS"].split(",")) == {
        "X-Kong-Request-Id",
        "X-Kong-Upstream-Latency",
        "X-Kong-Proxy-Latency",
        "X-Kong-Response-Latency",
    }


def test_compose_stops_kong_by_a_signal_that_waits_for_no_socket() -> None:
    """With the SIGQUIT of its image Kong goes on while a socket is open."""
    assert yaml.safe_load((INFRA / "compose.yaml").read_text())["services"]["kong"]["stop_signal"] == "SIGTERM"


def test_a_call_waits_shortly_for_a_silent_instance_of_the_query_service() -> None:
    """Kong runs no check of type tcp for it, and has none for another port: every call may meet the silent one."""
    file = yaml.safe_load(FILE_OF_KONG.read_text())
    [upstream] = [each for each in file["upstreams"] if each["name"] == "query-service"]
    [service] = [each for each in file["services"] if each["host"] == "query-service"]

    assert upstream["healthchecks"]["active"]["type"] == "tcp"
    assert service["connect_timeout"] <= 500
    assert service["retries"] >= 1


def test_no_header_of_a_credential_or_a_consumer_passes_from_a_client_to_an_edge() -> None:
    """Those that name the consumer are set by the plugins of routes with credentials; a user's name is not."""
    for service in yaml.safe_load(FILE_OF_KONG.read_text())["services"]:
        [plugin] = [each for each in service["plugins"] if each["name"] == "request-transformer"]
        removed = set(plugin["config"]["remove"]["headers"])

        assert "X-Credential-Username" in removed or service["host"] == "query-service", service["name"]


def _variable(reference: str) -> str:
    """Returns the environment variable that a reference names, in either form."""
    return reference.upper().replace("-", "_")
