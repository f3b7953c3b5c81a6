"""The stack's processes, after which others each starts and when it is ready, and a gateway that obeys kong.yaml."""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx

from kong_envoy import KongEnvoyError, envoy_command, load, render, to_yaml
from local_stack import LocalStackError
from local_stack.domain_files import (
    STORES,
    TEXTS,
    TOPICS,
    domains_directory,
    messages_directory,
    system_file,
    write_domain_files,
)
from local_stack.domains import FIRST, named_for
from local_stack.process_spec import ProcessSpec
from local_stack.settings import EDGES, HOST, PROGRAMS, QUERIES, Settings, simulator_server
from local_stack.sources import Source, source_of
from local_stack.stack_directory import write_private
from local_stack.stack_file import Credentials
from testkit.broker import Broker
from testkit.certificates import Certificates

MEMORY_VARIABLE = "STREAM_PROCESSOR_DRIVER_MEMORY"
MESSAGES_VARIABLE = "STATECAST_DESCRIPTORS"
PIPELINES_PER_GB = 5  # of heap, beyond the first GB, which is the processor's default

# Probes keep no connection: a service that stops would wait for an idle one.
HTTP = httpx.Client(timeout=2.0, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

# Chooses the processes and the demo users for settings with a port for every server, as `whole_stack` does.
Plan = Callable[[Settings], tuple[Sequence[ProcessSpec], Mapping[str, Credentials]]]


def whole_stack(settings: Settings) -> tuple[Sequence[ProcessSpec], Mapping[str, Credentials]]:
    """Returns every service, with files about the domains, certificates, and a secret between gateway and edges."""
    write_domain_files(settings)
    secret = secrets.token_urlsafe(32)
    users = configure_gateway(settings, secret)
    return process_specs(settings, secret, staff_headers(users)), users


def configure_gateway(settings: Settings, secret: str) -> dict[str, Credentials]:
    """Writes Envoy's configuration, issues its certificate, and returns the users of Kong's file by name.

    `secret` proves to the edges who calls. Raises LocalStackError for a file that cannot be rendered or names no user.
    """
    at, certificates = settings.address_of, Certificates(settings.files.tls)
    certificates.ensure(datetime.now(UTC))
    certificate, key = certificates.certificate.read_text(), certificates.key.read_text()
    variables = {"GATEWAY_SECRET": secret, "GATEWAY_TLS_CERTIFICATE": certificate, "GATEWAY_TLS_KEY": key}
    listen = {"listen_http": at("gateway-http"), "listen_https": at("gateway-https"), "admin": at("gateway-admin")}
    behind = {"ws-edge:8080": list(map(at, EDGES)), "query-service:50051": list(map(at, QUERIES))}
    try:
        document = load(settings.kong_file)
        config = render(document, environment={**os.environ, **variables}, **listen, resolve=behind)
    except KongEnvoyError as error:
        raise LocalStackError(f"{settings.kong_file} cannot be rendered for Envoy: {error}") from error
    write_private(settings.files.envoy_file, to_yaml(config))
    return demo_users(document)


def demo_users(document: Mapping[str, Any]) -> dict[str, Credentials]:
    """Returns the users of Kong's document that have credentials, by name.

    Raises LocalStackError when there is none.
    """
    consumers = {consumer["username"]: _credentials(consumer) for consumer in document.get("consumers", [])}
    users = {name: user for name, user in consumers.items() if user.basic or user.key or user.jwt}
    if not users:
        raise LocalStackError("the gateway's file names no consumer with credentials")
    return users


def staff_headers(users: Mapping[str, Credentials]) -> Mapping[str, str]:
    """Returns the headers of the first of staff. Raises LocalStackError when nobody of staff has a key."""
    for user in users.values():
        if "staff" in user.groups and user.key:
            return user.headers
    raise LocalStackError("the gateway's file names no consumer of the group staff with a key")


def _credentials(consumer: dict[str, Any]) -> Credentials:
    kinds = ("basicauth_credentials", "keyauth_credentials", "jwt_secrets")
    basic, key, jwt = (next(iter(consumer.get(kind, [])), None) for kind in kinds)
    groups = tuple(acl["group"] for acl in consumer.get("acls", []))
    customer_id = "" if "staff" in groups else consumer.get("custom_id", "")
    return Credentials(customer_id=customer_id, groups=groups, basic=basic, key=key and key["key"], jwt=jwt)


def process_specs(settings: Settings, secret: str, staff: Mapping[str, str]) -> list[ProcessSpec]:
    """Returns all processes, each after those it needs.

    `secret` proves the gateway to edges; `staff` may see the shard map.
    """
    data, port_of, at = settings.files.data, settings.port_of, settings.address_of
    broker = Broker(data / "kafka", settings.kafka_port, settings.kafka_controller_port)
    files = {name: str(system_file(settings, name)) for name in TEXTS}
    topics = (str(PROGRAMS / "kafka-topics"), files[TOPICS], "--bootstrap-server", settings.bootstrap)
    sources = {domain: source_of(domain, settings) for domain in settings.domains}
    query = settings.model_dump(include={"replicas", "session_timeout_ms"}) | {"host": HOST, "advertised_host": HOST}
    query["stores"] = files[STORES]
    edge = {"host": HOST, "gateway_secret": secret, "query_addresses": ",".join(map(at, QUERIES))}
    edge["domains"] = str(domains_directory(settings))

    service = partial(_service, settings)

    def query_service(name: str) -> ProcessSpec:
        ports = {"port": port_of(name), "shard_port": port_of(f"{name}-shard")}
        values = {**query, **ports, "instance": name, "data_directory": data / name}
        return service("query-service", port_of(f"{name}-metrics"), values, name)

    # The gateway is ready when it lets staff through to an edge that is ready.
    admits = partial(probe_http, f"http://{at('gateway-http')}/v1/shards", staff)
    configure = partial(configure_gateway, settings, secret)  # before each start, as its file may have changed
    ready = partial(probe_broker, broker)
    brokers = [ProcessSpec("broker", broker.command(), {}, ready, (), broker.prepare, stops_last=True)]
    return [
        *(() if settings.kafka_bootstrap else brokers),
        ProcessSpec("topics", topics, after=() if settings.kafka_bootstrap else ("broker",), may_end=True),
        *(spec for domain, source in sources.items() for spec in _source(domain, source, settings)),
        _processor(list(sources.values()), settings),
        *(query_service(name) for name in QUERIES),
        *(service("ws-edge", port_of(name), {**edge, "instance": name}, name) for name in EDGES),
        ProcessSpec("gateway", envoy_command(settings.files.envoy_file), {}, admits, ("topics",), configure),
    ]


def _source(domain: str, source: Source, settings: Settings) -> list[ProcessSpec]:
    """Returns publishers of a domain's changes; none of the stack's own where it has no simulator."""
    if domain not in settings.simulated:
        return []
    table = settings.model_dump(include={"seed", "customers", "items", "limit"})
    rows = settings.orders if domain == FIRST else settings.rows
    values = {**table, "domain": domain, "rows": rows, "rate": f"{settings.rate:g}", **source.simulator}
    port, name = settings.port_of(simulator_server(domain)), named_for("cdc-simulator", domain)
    simulator = _service(settings, "cdc-simulator", port, values, name)
    after = ("topics", *(spec.name for spec in source.database))
    return [*source.database, replace(simulator, after=after, may_end=True), *source.connector]


def _processor(sources: Sequence[Source], settings: Settings) -> ProcessSpec:
    """Returns one process for the pipelines of all domains, which waits for its topics, and takes longest to start."""
    pipelines = [file for source in sources for file in source.pipelines]
    values = settings.model_dump(include={"checkpoint_interval", "driver_memory"}, exclude_defaults=True)
    if len(pipelines) > PIPELINES_PER_GB and MEMORY_VARIABLE not in os.environ:
        values = {"driver_memory": f"{1 + len(pipelines) // PIPELINES_PER_GB}g", **values}
    values = {**values, "checkpoints": settings.files.data / "checkpoints"}
    processor = _service(settings, "stream-processor", settings.processor_metrics_port, values)
    return replace(processor, command=(*processor.command, str(domains_directory(settings))), after=())


def _service(
    stack: Settings, program: str, status_port: int, settings: Mapping[str, object], name: str = ""
) -> ProcessSpec:
    # The edge answers for itself on the port that it serves.
    status = {"port": status_port} if program == "ws-edge" else {"metrics_host": HOST, "metrics_port": status_port}
    values = {"kafka_bootstrap": stack.bootstrap, **status, **settings}
    environment = {f"{program}_{key}".upper().replace("-", "_"): str(value) for key, value in values.items()}
    environment[MESSAGES_VARIABLE] = os.environ.get(MESSAGES_VARIABLE) or str(messages_directory(stack))
    probe = partial(probe_http, f"http://{HOST}:{status_port}/readyz")
    own = stack.programs / (name or program)
    command = (str(own if own.exists() else stack.programs / program), "run")
    return ProcessSpec(own.name, command, environment, probe, after=("topics",))


def probe_http(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Returns why the URL is not ready; empty when it answers 200."""
    try:
        response = HTTP.get(url, headers=headers)
    except httpx.HTTPError as error:
        return f"{url}: {error}"
    return "" if response.is_success else f"{url}: {response.status_code} {response.text[:200].strip()}"


def probe_broker(broker: Broker) -> str:
    """Returns why the broker is not ready; empty when it serves metadata."""
    return "" if broker.answers() else f"no broker answers at {broker.bootstrap}"
