"""Processes, their readiness, and the gateway with its demo users."""

import stat
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kong_envoy import envoy_command, load
from local_stack import LocalStackError
from local_stack.domains import pipelines_of
from local_stack.process_spec import ProcessSpec
from local_stack.settings import KONG_FILE, Settings
from local_stack.specs import (
    MEMORY_VARIABLE,
    MESSAGES_VARIABLE,
    configure_gateway,
    demo_users,
    probe_broker,
    probe_http,
    process_specs,
    staff_headers,
)
from local_stack.stack_file import Basic, Credentials
from statecast_domains.pipeline_file import read
from testkit.broker import Broker
from testkit.ports import free_ports


def table(settings: Settings) -> dict[str, ProcessSpec]:
    specs = process_specs(settings.with_ports(), "secret", {"X-Key": "staff"})
    return {spec.name: spec for spec in specs}


@pytest.fixture
def specs(tmp_path: Path) -> dict[str, ProcessSpec]:
    return table(Settings(directory=tmp_path, rate=7, replicas=1))


def test_a_program_with_the_name_of_a_process_takes_the_place_of_its_service(tmp_path: Path) -> None:
    (tmp_path / "query-1").touch()
    specs = table(Settings(directory=tmp_path, programs=tmp_path))

    assert specs["query-1"].command == (str(tmp_path / "query-1"), "run")
    assert specs["query-2"].command == (str(tmp_path / "query-service"), "run")


def test_the_gateway_is_configured_before_each_start(tmp_path: Path) -> None:
    kong_file = tmp_path / "kong.yaml"
    settings = Settings(directory=tmp_path, kong_file=kong_file)
    settings.files.create()
    prepare = table(settings)["gateway"].prepare
    assert prepare is not None
    for name in ("first", "second"):
        kong_file.write_text(KONG_FILE.read_text().replace("operator-demo-key", f"the-{name}-key"))
        prepare()

        assert f"the-{name}-key" in settings.files.envoy_file.read_text()


def test_every_process_comes_after_processes_of_the_table(specs: dict[str, ProcessSpec]) -> None:
    names = list(specs)

    for place, spec in enumerate(specs.values()):
        assert set(spec.after) <= set(names[:place])


def test_every_program_but_the_jvm_is_installed(specs: dict[str, ProcessSpec]) -> None:
    missing = [
        spec.command[0] for spec in specs.values() if spec.name != "broker" and not Path(spec.command[0]).exists()
    ]

    assert not missing


def test_settings_reach_the_services(specs: dict[str, ProcessSpec]) -> None:
    assert specs["cdc-simulator"].environment["CDC_SIMULATOR_RATE"] == "7"
    assert specs["query-2"].environment["QUERY_SERVICE_REPLICAS"] == "1"


def test_the_processor_follows_the_directory_of_the_domains(tmp_path: Path, specs: dict[str, ProcessSpec]) -> None:
    assert specs["stream-processor"].command[1:] == ("run", str(tmp_path / "domains"))


def test_messages_come_from_the_stack_unless_they_are_elsewhere(
    tmp_path: Path, specs: dict[str, ProcessSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MESSAGES_VARIABLE, "/elsewhere")
    chosen = table(Settings(directory=tmp_path))

    for name in ("stream-processor", "query-1", "edge-1"):
        assert specs[name].environment[MESSAGES_VARIABLE] == str(tmp_path / "messages")
        assert chosen[name].environment[MESSAGES_VARIABLE] == "/elsewhere"


def test_each_domain_has_a_simulator_and_one_processor_runs_all_pipelines(tmp_path: Path) -> None:
    specs = table(Settings(directory=tmp_path, domain="orders,odds", simulator_odds_metrics_port=23_456))
    orders, odds = (specs[name].environment for name in ("cdc-simulator", "cdc-simulator-odds"))

    assert (orders["CDC_SIMULATOR_DOMAIN"], odds["CDC_SIMULATOR_DOMAIN"]) == ("orders", "odds")
    assert odds["CDC_SIMULATOR_METRICS_PORT"] == "23456"
    assert orders["CDC_SIMULATOR_DATABASE"] != odds["CDC_SIMULATOR_DATABASE"]


def test_a_domain_runs_without_the_orders(tmp_path: Path) -> None:
    specs = table(Settings(directory=tmp_path, domain="bookings"))

    assert {name for name in specs if name.startswith("cdc-simulator")} == {"cdc-simulator-bookings"}


def test_more_pipelines_get_more_memory_unless_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = table(Settings(directory=tmp_path, domain="all"))
    set_by_hand = table(Settings(directory=tmp_path, domain="all", driver_memory="5g"))
    monkeypatch.setenv(MEMORY_VARIABLE, "6g")
    from_outside = table(Settings(directory=tmp_path, domain="all"))

    memory = [each["stream-processor"].environment.get(MEMORY_VARIABLE) for each in (every, set_by_hand, from_outside)]
    assert int(str(memory[0]).removesuffix("g")) > 1
    assert memory[1:] == ["5g", None]


def test_of_postgresql_other_domains_stay_with_their_simulators(tmp_path: Path) -> None:
    specs = table(Settings(directory=tmp_path, domain="orders,odds", source="postgres", postgres_port=12_345))

    assert specs["cdc-simulator"].environment["CDC_SIMULATOR_SINK"] == "postgres"
    assert "CDC_SIMULATOR_SINK" not in specs["cdc-simulator-odds"].environment
    assert [name for name in specs if name in ("postgres", "connect")] == ["postgres", "connect"]


def test_the_checkpoint_interval_is_the_pipelines_own_unless_set(tmp_path: Path, specs: dict[str, ProcessSpec]) -> None:
    name = "STREAM_PROCESSOR_CHECKPOINT_INTERVAL"
    chosen = table(Settings(directory=tmp_path, checkpoint_interval="10s"))

    assert name not in specs["stream-processor"].environment
    assert chosen["stream-processor"].environment[name] == "10s"


def test_edges_know_both_query_instances_and_the_secret(specs: dict[str, ProcessSpec]) -> None:
    edge = specs["edge-1"].environment

    ports = [specs[name].environment["QUERY_SERVICE_PORT"] for name in ("query-1", "query-2")]
    assert edge["WS_EDGE_QUERY_ADDRESSES"] == ",".join(f"127.0.0.1:{port}" for port in ports)
    assert edge["WS_EDGE_GATEWAY_SECRET"] == "secret"


def test_the_services_read_the_files_of_the_domains_that_run(tmp_path: Path, specs: dict[str, ProcessSpec]) -> None:
    assert str(tmp_path / "system" / "topics.yaml") in specs["topics"].command
    assert specs["query-1"].environment["QUERY_SERVICE_STORES"] == str(tmp_path / "system" / "stores.yaml")


def test_only_the_broker_is_stopped_last(specs: dict[str, ProcessSpec]) -> None:
    assert [spec.name for spec in specs.values() if spec.stops_last] == ["broker"]


def test_brokers_that_run_already_take_the_place_of_the_stacks_own(tmp_path: Path) -> None:
    specs = table(Settings(directory=tmp_path, kafka_bootstrap="127.0.0.1:1,127.0.0.1:2"))

    assert "broker" not in specs
    assert specs["topics"].after == ()
    assert specs["query-1"].environment["QUERY_SERVICE_KAFKA_BOOTSTRAP"] == "127.0.0.1:1,127.0.0.1:2"


@pytest.fixture
def postgres_specs(tmp_path: Path) -> dict[str, ProcessSpec]:
    return table(Settings(directory=tmp_path, source="postgres", postgres_port=12_345))


def test_of_postgresql_the_simulator_plays_into_it_before_the_connector_reads(
    postgres_specs: dict[str, ProcessSpec],
) -> None:
    names = list(postgres_specs)
    environment = postgres_specs["cdc-simulator"].environment

    assert environment["CDC_SIMULATOR_SINK"] == "postgres"
    assert environment["CDC_SIMULATOR_POSTGRES_URL"].endswith("@127.0.0.1:12345/statecast")
    assert "CDC_SIMULATOR_DATABASE" not in environment
    assert "postgres" in postgres_specs["cdc-simulator"].after
    assert {"cdc-simulator", "topics"} <= set(postgres_specs["connect"].after)
    for place, spec in enumerate(postgres_specs.values()):
        assert set(spec.after) <= set(names[:place])


@pytest.mark.usefixtures("postgres_specs")
def test_of_postgresql_the_pipelines_are_the_shipped_ones_in_another_format(tmp_path: Path) -> None:
    shipped = [read(file) for file in pipelines_of("orders")]
    own = [read(tmp_path / "domains" / "orders" / file.name) for file in pipelines_of("orders")]

    assert {pipeline.source.format for pipeline in own} == {"debezium-json"}
    for pipeline, other in zip(own, shipped, strict=True):
        source = pipeline.source.model_copy(update={"format": "protobuf"})
        assert pipeline.model_copy(update={"source": source}) == other


def test_the_data_of_each_source_stand_apart(tmp_path: Path) -> None:
    data = {Settings(directory=tmp_path, source=source).files.data for source in ("simulator", "postgres")}

    assert data == {tmp_path / "data", tmp_path / "data-postgres"}


class Handler(BaseHTTPRequestHandler):
    """Reports ready only to requests with the right header."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("X-Key") == "right" else 503)
        self.end_headers()
        self.wfile.write(b"two partitions to go")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/readyz"
        server.shutdown()
        thread.join()


def test_nothing_is_missing_when_the_answer_is_200(url: str) -> None:
    missing = probe_http(url, {"X-Key": "right"})

    assert missing == ""


def test_the_answer_says_what_is_missing(url: str) -> None:
    missing = probe_http(url)

    assert missing == f"{url}: 503 two partitions to go"


def test_nobody_listening_is_said() -> None:
    (port,) = free_ports(1)
    missing = probe_http(f"http://127.0.0.1:{port}/")

    assert missing == f"http://127.0.0.1:{port}/: [Errno 111] Connection refused"


@pytest.mark.kafka
def test_a_broker_is_ready_when_it_serves_metadata(kafka: str, tmp_path: Path) -> None:
    port, unused = int(kafka.partition(":")[2]), free_ports(1)[0]

    assert probe_broker(Broker(tmp_path, port, 0)) == ""
    assert "no broker answers" in probe_broker(Broker(tmp_path, unused, 0))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    chosen = Settings(directory=tmp_path / "stack").with_ports()
    chosen.files.create()
    return chosen


def configure(settings: Settings) -> dict[str, Credentials]:
    return configure_gateway(settings, "the-secret-of-this-run")


def test_envoy_accepts_what_is_rendered_from_the_gateways_file(settings: Settings) -> None:
    configure(settings)

    validation = subprocess.run(
        [*envoy_command(settings.files.envoy_file), "--mode", "validate"], capture_output=True, text=True, check=False
    )
    assert validation.returncode == 0, validation.stderr


def test_the_secret_of_the_run_is_in_a_file_that_only_the_owner_reads(settings: Settings) -> None:
    configure(settings)

    config = settings.files.envoy_file
    assert "the-secret-of-this-run" in config.read_text()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("_format_version: '3.0'\nsurprise: true\n", "surprise"),
        ("consumers: [", "is not YAML"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_carried_over_is_refused_by_its_name(
    settings: Settings, tmp_path: Path, content: str | None, problem: str
) -> None:
    kong_file = tmp_path / "kong.yaml"
    if content is not None:
        kong_file.write_text(content)
    with pytest.raises(LocalStackError, match=f"{kong_file} cannot be rendered for Envoy: .*{problem}"):
        configure(settings.model_copy(update={"kong_file": kong_file}))


def test_a_user_with_a_key_has_a_header() -> None:
    operator = Credentials(basic=Basic(username="operator", password="secret"), key="k")

    assert operator.headers == {"apikey": "k"}
    assert Credentials().headers == {}


def test_the_gateways_file_names_customers_and_staff(settings: Settings) -> None:
    users = configure(settings)

    alice = users["alice"]
    assert alice.customer_id == "customer-0001"
    assert alice.basic is not None
    assert alice.key is not None
    assert alice.jwt is not None
    assert any("staff" in user.groups and not user.customer_id for user in users.values())


def test_a_consumer_without_credentials_is_no_demo_user() -> None:
    assert "anonymous" not in demo_users(load(KONG_FILE))


def test_a_file_without_credentials_is_refused() -> None:
    document: dict[str, Any] = {"consumers": [{"username": "nobody"}]}

    with pytest.raises(LocalStackError, match="file names no consumer with credentials"):
        demo_users(document)


def test_a_file_without_a_staff_consumer_with_a_key_is_refused() -> None:
    users = {
        "alice": Credentials(key="k"),
        "operator": Credentials(groups=("staff",), basic=Basic(username="operator", password="secret")),
    }

    with pytest.raises(LocalStackError, match="file names no consumer of the group staff with a key"):
        staff_headers(users)
