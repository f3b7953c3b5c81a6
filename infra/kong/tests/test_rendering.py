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


def test_targets_are_found_where_they_are_said_to_be(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = rendered(document, environment, resolve={"ws-edge-1:8080": "127.0.0.1:18081"})
    endpoints = config["static_resources"]["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    addresses = [each["endpoint"]["address"]["socket_address"] for each in endpoints]

    assert addresses == [
        {"address": "127.0.0.1", "port_value": 18081},
        {"address": "ws-edge-2", "port_value": 8080},
    ]


def test_longer_paths_are_tried_first(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = rendered(document, environment)
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    prefixes = [route["match"].get("prefix") for route in manager["route_config"]["virtual_hosts"][0]["routes"]]

    assert prefixes.index("/v1/shards") < prefixes.index("/v1/")
