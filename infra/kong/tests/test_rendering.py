"""The configuration for Envoy."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kong_envoy import KongEnvoyError, envoy_command, render, to_yaml


def rendered(document: dict[str, Any], environment: dict[str, str], **changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "listen_http": "127.0.0.1:18000",
        "listen_https": "127.0.0.1:18443",
        "admin": "127.0.0.1:18001",
        "environment": environment,
    }
    return render(document, **(options | changes))


def test_envoy_finds_nothing_wrong_with_it(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "envoy.yaml"
    file.write_text(to_yaml(rendered(document, environment)))
    check = subprocess.run([*envoy_command(file), "--mode", "validate"], check=False, capture_output=True, text=True)

    assert check.returncode == 0, check.stderr


def test_the_text_says_what_the_configuration_says(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = rendered(document, environment)

    assert yaml.safe_load(to_yaml(config)) == config


def test_grpc_is_taken_over_tls_alone_and_spoken_to_its_upstream(
    document: dict[str, Any], environment: dict[str, str]
) -> None:
    resources = rendered(document, environment)["static_resources"]
    plain, encrypted = (
        {route["metadata"]["filter_metadata"]["envoy.filters.http.lua"]["route"] for route in _routes_of(listener)}
        for listener in resources["listeners"]
    )
    [cluster] = [each for each in resources["clusters"] if each["name"].startswith("query-service")]

    assert encrypted - plain == {"lookups"}
    assert "http2_protocol_options" in str(cluster["typed_extension_protocol_options"])
    assert "tcp_health_check" in cluster["health_checks"][0]


def _routes_of(listener: dict[str, Any]) -> list[dict[str, Any]]:
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    routes: list[dict[str, Any]] = manager["route_config"]["virtual_hosts"][0]["routes"]
    return routes


@pytest.mark.parametrize("place", ["listen_http", "listen_https", "admin"])
@pytest.mark.parametrize("address", ["0.0.0.0:8000", "192.0.2.1:8000", "localhost:8000", "127.0.0.1", "127.0.0.1:x"])
def test_only_this_machine_is_listened_on(
    document: dict[str, Any], environment: dict[str, str], place: str, address: str
) -> None:
    with pytest.raises(KongEnvoyError, match=r"must have the form|not of this machine"):
        rendered(document, environment, **{place: address})


def test_without_tls_no_certificate_is_needed(document: dict[str, Any]) -> None:
    config = rendered(document, {}, listen_https=None)

    assert [listener["name"] for listener in config["static_resources"]["listeners"]] == ["http"]


def endpoints_in(config: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Address, port and name of the edges' endpoints, which must be the same in all their clusters."""
    clusters = [
        each["load_assignment"]["endpoints"][0]["lb_endpoints"]
        for each in config["static_resources"]["clusters"]
        if each["name"].startswith("ws-edge")
    ]

    assert all(each == clusters[0] for each in clusters)
    endpoints = [each["endpoint"] for each in clusters[0]]
    places = [each["address"]["socket_address"] for each in endpoints]
    return [
        (place["address"], place["port_value"], each["hostname"]) for place, each in zip(places, endpoints, strict=True)
    ]


def test_a_target_is_found_at_all_addresses_that_are_given(
    document: dict[str, Any], environment: dict[str, str]
) -> None:
    config = rendered(document, environment, resolve={"ws-edge:8080": ["127.0.0.1:18080", "127.0.0.1:18081"]})

    assert endpoints_in(config) == [("127.0.0.1", 18080, "ws-edge:8080"), ("127.0.0.1", 18081, "ws-edge:8080")]


def test_a_target_without_addresses_is_looked_up_and_all_that_is_found_is_balanced(
    document: dict[str, Any], environment: dict[str, str]
) -> None:
    config = rendered(document, environment)

    assert endpoints_in(config) == [("ws-edge", 8080, "ws-edge:8080")]
    assert {each["type"] for each in config["static_resources"]["clusters"]} == {"STRICT_DNS"}


def test_longer_paths_are_tried_first(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = rendered(document, environment)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    prefixes = [route["match"].get("prefix") for route in manager["route_config"]["virtual_hosts"][0]["routes"]]

    assert prefixes.index("/v1/shards") < prefixes.index("/v1/")
