"""PostgreSQL as the source is the same in containers and on Kubernetes as in the local stack with SOURCE=postgres."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from rendered_charts import WITH_POSTGRES, WORKLOADS, Manifest, container_of
from service_facts import COMPOSE, POSTGRES_SOURCE, ROOT, SETTINGS

from local_stack.domains import DOMAINS, FIRST
from local_stack.settings import Settings
from local_stack.sources import TABLE, postgres_source
from statecast_domains.directories import pipeline_files
from testkit.debezium import CONNECTOR, LIBS, LOGGING, Connect, postgres_connector
from testkit.postgres import AUTHENTICATION, TEXT, USER, Postgres
from testkit.postgres import SETTINGS as POSTGRES_SETTINGS

INFRA = ROOT / "infra"
IMAGE = INFRA / "connect"
BROKER = COMPOSE["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].removeprefix("PLAINTEXT://")
SECRETS = "/run/secrets"
PASSWORD = "postgres-password"
OTHERS = ("postgres", "connect")
"""The containers that compose.yaml does not have."""


def dockerfile_words(instruction: str) -> list[str]:
    line = re.search(rf"^{instruction} (\[.*\])$", (IMAGE / "Dockerfile").read_text(), re.MULTILINE)
    assert line is not None
    words: list[str] = json.loads(line[1])
    return words


def version_of(part: str, name: str) -> str | None:
    pom = ElementTree.parse(INFRA / "local" / part / "pom.xml")
    return next(element.text for element in pom.iter() if element.tag.endswith(f"}}{name}.version"))


def on_kubernetes(name: str) -> Manifest:
    """Returns the only container of a workload."""
    [workload] = [each for each in WITH_POSTGRES if each["kind"] in WORKLOADS and each["metadata"]["name"] == name]
    return container_of(workload)


def as_started(container: Manifest, field: str) -> list[str]:
    return [word.replace("$$", "$") for word in container[field]]


COMPOSE_SCRIPT = as_started(POSTGRES_SOURCE["stream-processor"], "entrypoint")[2]
CHART_SCRIPT = on_kubernetes("stream-processor")["command"][2]


@pytest.fixture
def worker() -> Connect:
    """The local stack's, with the addresses and paths of the containers."""
    connector = dict(postgres_connector(Postgres(Path("/"), 5432), [TABLE]))
    connector |= {"database.hostname": "postgres", "database.password": f"${{directory:{SECRETS}:{PASSWORD}}}"}
    return Connect(Path("/var/lib/connect"), 8083, BROKER, connector)


def test_the_connector_is_configured_as_in_the_local_stack(worker: Connect) -> None:
    document = json.loads((IMAGE / "connector.json").read_text())

    assert document == {"name": CONNECTOR, "config": worker.connector}


def test_the_worker_is_configured_as_in_the_local_stack(worker: Connect) -> None:
    lines = (IMAGE / "worker.properties").read_text().splitlines()

    assert dict(line.split("=", 1) for line in lines) == worker.worker_settings()
    assert (IMAGE / "log4j2.xml").read_text().strip() == LOGGING.strip()


def test_the_image_runs_the_jars_and_the_command_of_the_local_stack(worker: Connect) -> None:
    local = Connect(Path("/etc/connect"), worker.port, worker.bootstrap, worker.connector).command()
    paths = {"java": "/opt/java/bin/java", f"{LIBS}/*": "/opt/connect/libs/*"}
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (IMAGE / "Dockerfile").read_text(), re.MULTILINE)

    assert [*dockerfile_words("ENTRYPOINT"), *dockerfile_words("CMD")] == [paths.get(word, word) for word in local]
    assert copied[0] == "infra/local/connect/pom.xml"
    assert all((ROOT / file).exists() for files in copied for file in files.split())
    assert f"kafka:{version_of('connect', 'kafka')}" in COMPOSE["kafka"]["image"]


def test_the_database_is_that_of_the_local_stack() -> None:
    container = POSTGRES_SOURCE["postgres"]
    of_containers = ("listen_addresses", "unix_socket_directories")  # the image's own, which fit a container
    settings = {name: value for name, value in POSTGRES_SETTINGS.items() if name not in of_containers}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    environment = container["environment"]

    assert f"{container['image']}.0" == f"postgres:{version_of('postgres', 'postgres')}"
    assert container["command"] == on_kubernetes("postgres")["args"] == ["postgres", *words]
    assert environment["POSTGRES_USER"] == environment["POSTGRES_DB"] == USER
    assert environment["POSTGRES_INITDB_ARGS"].split() == [f"--auth-host={AUTHENTICATION}", *TEXT]


def test_the_simulator_plays_as_in_the_local_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = postgres_source(Settings(directory=tmp_path, source="postgres", postgres_port=5432)).simulator
    added = POSTGRES_SOURCE["cdc-simulator"]["environment"]
    patched = {each["name"]: each.get("value") for each in on_kubernetes("cdc-simulator")["env"]}
    for name, value in {**COMPOSE["cdc-simulator"]["environment"], **added}.items():
        monkeypatch.setenv(name, value)

    assert {name.removeprefix("CDC_SIMULATOR_").lower() for name in added} == set(local)
    assert added["CDC_SIMULATOR_SINK"] == local["sink"]
    assert added["CDC_SIMULATOR_POSTGRES_URL"] == re.sub(r":[^:@]+@[^:]+:", "@postgres:", str(local["postgres_url"]))
    assert {**added, "PGPASSWORD": None}.items() <= patched.items()
    assert SETTINGS["cdc-simulator"]().model_dump()["sink"] == "postgres"


@pytest.mark.parametrize("script", [COMPOSE_SCRIPT, CHART_SCRIPT], ids=["compose", "chart"])
def test_the_pipelines_of_the_orders_are_those_of_the_local_stack(script: str, tmp_path: Path) -> None:
    local = postgres_source(Settings(directory=tmp_path / "local", source="postgres", postgres_port=5432)).pipelines
    files = pipelines_run(script, tmp_path, f"/domains/{FIRST}")

    assert files == {file.name: yaml.safe_load(file.read_text()) for file in local}


@pytest.mark.parametrize("script", [COMPOSE_SCRIPT, CHART_SCRIPT], ids=["compose", "chart"])
def test_other_domains_run_beside_the_orders_as_they_are_shipped(script: str, tmp_path: Path) -> None:
    of_orders = pipelines_run(script, tmp_path, f"/domains/{FIRST}")
    shipped = {file.name: yaml.safe_load(file.read_text()) for file in pipeline_files([DOMAINS])}
    odds = {file.name: yaml.safe_load(file.read_text()) for file in pipeline_files([DOMAINS / "odds"])}

    assert pipelines_run(script, tmp_path, f"/domains/{FIRST}", "/domains/odds") == odds | of_orders
    assert pipelines_run(script, tmp_path, "/domains") == shipped | of_orders


def pipelines_run(script: str, directory: Path, *paths: str) -> dict[str, Any]:
    """Runs the script of a container, and returns the pipelines that its processor would run."""
    moved = script.replace("/tmp", f"{directory}/tmp").replace("cp -r /domains", f"cp -r {DOMAINS}")
    moved = moved.replace("exec tini -- stream-processor", "echo")
    (directory / "tmp").mkdir(exist_ok=True)
    arguments = ["sh", "-e", "-c", moved, "stream-processor", "run", *paths]
    run, *places = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
    files = pipeline_files(map(Path, places))

    assert run == "run"
    return {file.name: yaml.safe_load(file.read_text()) for file in files}


def test_the_processor_runs_the_directories_that_are_named() -> None:
    assert "command" not in POSTGRES_SOURCE["stream-processor"], "that of compose.yaml has PIPELINES"
    assert on_kubernetes("stream-processor")["args"] == ["run", "/domains/orders"]


@pytest.mark.parametrize("name", ["postgres", "connect"])
def test_health_is_asked_alike_in_containers_and_on_kubernetes(name: str) -> None:
    [_, *command] = POSTGRES_SOURCE[name]["healthcheck"]["test"]

    assert on_kubernetes(name)["readinessProbe"]["exec"]["command"] == command
    assert name == "postgres" or f"/connectors/{CONNECTOR}/status" in command[-1]


def test_the_password_stands_in_a_secret_alone() -> None:
    compose = (INFRA / "compose.postgres.yaml").read_text()
    declared: dict[str, Any] = yaml.safe_load(compose)["secrets"]
    reading = {name for name, container in POSTGRES_SOURCE.items() if container.get("secrets") == [PASSWORD]}
    mounts = [on_kubernetes(name)["volumeMounts"] for name in OTHERS]
    [password] = [each["valueFrom"] for each in on_kubernetes("cdc-simulator")["env"] if each["name"] == "PGPASSWORD"]

    assert declared[PASSWORD]["file"].startswith("${POSTGRES_PASSWORD_FILE:?")
    assert reading == {*OTHERS, "cdc-simulator"}
    assert f"$(cat {SECRETS}/{PASSWORD})" in as_started(POSTGRES_SOURCE["cdc-simulator"], "entrypoint")[-1]
    assert POSTGRES_SOURCE["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"] == f"{SECRETS}/{PASSWORD}"
    assert all({"name": "password", "mountPath": SECRETS, "readOnly": True} in each for each in mounts)
    assert password == {"secretKeyRef": {"name": "postgres", "key": PASSWORD}}
    assert f"--from-file={PASSWORD}=/dev/stdin" in (INFRA / "charts" / "README.md").read_text()


@pytest.mark.parametrize("name", OTHERS)
def test_a_container_of_the_source_has_no_rights_and_cannot_change_its_image(name: str) -> None:
    container, security = POSTGRES_SOURCE[name], on_kubernetes(name)["securityContext"]

    assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+)+", container["image"])
    assert container["read_only"] is security["readOnlyRootFilesystem"] is True
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert "user" in container or re.search(r"^USER \d+$", (IMAGE / "Dockerfile").read_text(), re.MULTILINE)


def test_the_base_images_of_connect_can_be_replaced() -> None:
    defaults = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", (IMAGE / "Dockerfile").read_text(), re.MULTILINE))

    assert POSTGRES_SOURCE["connect"]["build"]["args"] == {
        argument: f"${{{argument}:-{image}}}" for argument, image in defaults.items()
    }
