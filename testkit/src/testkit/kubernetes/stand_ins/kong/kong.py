#!/opt/venv/bin/python
"""The subcommands of Kong that are in use here: `start`, by Kong's variables, `health` and `quit --timeout SECONDS`."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ADMIN = "127.0.0.1:8001"
POLL_S = 0.2
MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"


def start() -> None:
    """Becomes Envoy. Raises KongEnvoyError when the file cannot be rendered."""
    from kong_envoy import envoy_command, load, render, to_yaml

    config = render(
        load(Path(os.environ["KONG_DECLARATIVE_CONFIG"])),
        environment=os.environ,
        listen_http="127.0.0.1:8000",
        listen_https="127.0.0.1:8443",
        admin=ADMIN,
    )
    resources = config["static_resources"]
    addresses = {"https" if "ssl" in each else "http": each for each in os.environ["KONG_PROXY_LISTEN"].split(",")}
    resources["listeners"] = [
        each | {"address": address_of(addresses[each["name"]])}
        for each in resources["listeners"]
        if each["name"] in addresses
    ]
    if status := os.environ.get("KONG_STATUS_LISTEN"):
        resources["listeners"].append(status_listener(status))
    file = Path(os.environ.get("KONG_PREFIX", "/tmp")) / "envoy.yaml"
    file.write_text(to_yaml(config), encoding="utf-8")
    command = envoy_command(file)
    os.execv(command[0], command)


def address_of(listen: str) -> dict[str, Any]:
    """Returns Envoy's form of an address that Kong listens on, `host:port` and flags."""
    host, _, port = listen.split()[0].rpartition(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def status_listener(listen: str) -> dict[str, Any]:
    """Answers below /status as soon as Envoy is ready: it does not listen before."""
    routes = [{"match": {"prefix": "/status"}, "direct_response": {"status": 200}}]
    host = {"name": "status", "domains": ["*"], "routes": routes}
    manager = {
        "@type": MANAGER,
        "stat_prefix": "status",
        "route_config": {"virtual_hosts": [host]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    return {"name": "status", "address": address_of(listen), "filter_chains": [{"filters": filters}]}


def quit_within(seconds: float) -> None:
    """Takes no more connections, and ends when all are closed or the time is over."""
    deadline = time.monotonic() + seconds
    ask("/drain_listeners", method="POST")
    while time.monotonic() < deadline and connections():
        time.sleep(POLL_S)
    ask("/quitquitquit", method="POST")


def connections() -> int:
    """Returns how many clients are connected."""
    [stat] = json.loads(ask("/stats?filter=^http.https.downstream_cx_active$&format=json"))["stats"]
    return int(stat["value"])


def ask(path: str, method: str = "GET") -> bytes:
    """Returns the answer of Envoy's admin interface."""
    with urlopen(Request(f"http://{ADMIN}{path}", method=method), timeout=5) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start" | "docker-start"]:
            start()
        case ["health"]:
            ask("/ready")
        case ["quit", "--timeout", seconds]:
            quit_within(float(seconds))
        case other:
            sys.exit(f"{other} is nothing that this stand-in of Kong knows")
