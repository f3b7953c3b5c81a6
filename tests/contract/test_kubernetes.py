"""The charts fit the services: Kubernetes and compose.yaml run the same, and every name in the charts exists."""

import re

import pytest
import yaml
from rendered_charts import (
    EVERY,
    EXECUTORS,
    MANIFESTS,
    OURS,
    PODS,
    SERVERS,
    WITH_EXECUTORS,
    WITH_POSTGRES,
    WORKLOADS,
    Manifest,
    container_of,
    every,
    labels_of_pods,
    name_of,
    pod_of,
    selects,
    service_of,
    values_of,
)
from service_facts import COMPOSE, ROOT, SETTINGS, in_compose, ports_of, variables_of_image

KINDS = {
    *WORKLOADS,
    *("Service", "ConfigMap", "PersistentVolumeClaim", "PodDisruptionBudget", "NetworkPolicy"),
    *("ServiceAccount", "Role", "RoleBinding"),
}
MADE_BY_HAND = {"kong", "gateway", "gateway-tls", "postgres"}
"""The Secrets that README.md has commands for."""


def test_every_container_of_compose_has_its_workload() -> None:
    made_by_hand = {"credentials"}  # Secrets
    wanted = {re.sub(r"-\d+$", "", name) for name in COMPOSE} - {"topics", *made_by_hand} | {"kafka-topics"}

    assert {service_of(each) for each in MANIFESTS if each["kind"] in WORKLOADS} == wanted


@pytest.mark.parametrize("manifest", EVERY, ids=name_of)
def test_an_object_is_of_a_known_kind_and_in_the_namespace(manifest: Manifest) -> None:
    namespace = "statecast-executors" if manifest in EXECUTORS else "statecast"

    assert manifest["kind"] in KINDS
    assert manifest["metadata"]["namespace"] == namespace


@pytest.mark.parametrize("files", [MANIFESTS, WITH_EXECUTORS, WITH_POSTGRES], ids=["one pod", "executors", "postgres"])
def test_no_two_manifests_are_of_one_name(files: list[Manifest]) -> None:
    names = [name_of(each) for each in files]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("workload", PODS, ids=name_of)
def test_a_pod_runs_the_image_of_compose(workload: Manifest) -> None:
    assert container_of(workload)["image"] == in_compose(service_of(workload))["image"]


@pytest.mark.parametrize("workload", OURS, ids=name_of)
def test_the_services_accept_their_variables(workload: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_of(workload)
    prefix = f"{service.upper().replace('-', '_')}_"
    names = [each["name"] for each in container_of(workload)["env"] if each["name"] != "SPARK_CONF_DIR"]
    for name in names:
        monkeypatch.setenv(name, values_of(workload).get(name, "given-by-the-cluster-when-it-starts"))
    fields = SETTINGS[service]().model_fields_set

    assert {f"{prefix}{field.upper()}" for field in fields} == set(names)


@pytest.mark.parametrize("workload", SERVERS, ids=name_of)
def test_a_variable_has_the_value_of_compose(workload: Manifest) -> None:
    differing = {"KAFKA_LOG_DIRS", "KONG_DECLARATIVE_CONFIG", "WS_EDGE_QUERY_ADDRESSES"}
    differing |= {"QUERY_SERVICE_ADVERTISED_HOST", "KONG_PROXY_LISTEN"}
    compose = in_compose(service_of(workload)).get("environment", {})
    names = [each["name"] for each in container_of(workload).get("env", [])]

    # A driver without tasks of its own needs no more memory than by default.
    assert set(compose) - {"STREAM_PROCESSOR_DRIVER_MEMORY"} <= set(names)
    for name, value in values_of(workload).items():
        expected = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", compose.get(name, ""))
        assert name in differing or name not in compose or value == expected.replace("$$", "$")


def test_the_gateways_kernel_holds_as_little_as_in_compose() -> None:
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]
    sysctls = pod_of(gateway)["spec"]["securityContext"]["sysctls"]

    assert {each["name"]: each["value"] for each in sysctls} == in_compose("kong")["sysctls"]


@pytest.mark.parametrize("workload", OURS, ids=name_of)
def test_the_ports_are_those_of_the_service(workload: Manifest) -> None:
    ports = {str(each["containerPort"]) for each in container_of(workload)["ports"]}

    assert ports - {"7078", "7079"} == ports_of(service_of(workload))


@pytest.mark.parametrize("workload", OURS, ids=name_of)
def test_no_variable_says_what_the_image_or_the_service_says_by_itself(workload: Manifest) -> None:
    service = service_of(workload)
    prefix = f"{service.upper().replace('-', '_')}_"
    in_containers = in_compose(service)["environment"]
    for name, value in {**in_containers, **values_of(workload)}.items():
        field = SETTINGS[service].model_fields.get(name.removeprefix(prefix).lower())

        assert name not in variables_of_image(service), name
        assert field is None or str(field.default).lower() != str(value).lower(), name


@pytest.mark.parametrize("workload", OURS, ids=name_of)
def test_the_probes_ask_pages_that_the_service_has(workload: Manifest) -> None:
    container = container_of(workload)
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    sources = (ROOT / "services" / service_of(workload) / "src").rglob("*.py")
    code = "".join(file.read_text() for file in sources)
    if "HealthServer(" in code:
        code += (ROOT / "libs" / "service" / "src" / "statecast_service" / "health.py").read_text()
    page = in_compose(service_of(workload))["healthcheck"]["test"][-1]
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}

    assert f":{ports[probes['readiness']['port']]}{probes['readiness']['path']}'" in page
    for probe in probes.values():
        assert f'"{probe["path"]}"' in code
        assert probe["port"] in ports


@pytest.mark.parametrize("files", [MANIFESTS, WITH_EXECUTORS, WITH_POSTGRES], ids=["one pod", "executors", "postgres"])
def test_what_selects_pods_finds_some(files: list[Manifest]) -> None:
    pods = labels_of_pods(files)
    selectors = [{"matchLabels": each["spec"]["selector"]} for each in every("Service", files)]
    selectors += [each["spec"]["selector"] for each in every("PodDisruptionBudget", files)]
    selectors += [each["spec"]["podSelector"] for each in every("NetworkPolicy", files)]
    selectors += [each["spec"]["selector"] for kind in ("StatefulSet", "Deployment") for each in every(kind, files)]

    for selector in selectors:
        assert any(selects(selector, labels) for labels in pods), selector


@pytest.mark.parametrize("service", every("Service"), ids=name_of)
def test_a_service_leads_to_ports_that_its_pods_have(service: Manifest) -> None:
    for workload in SERVERS:
        if selects({"matchLabels": service["spec"]["selector"]}, pod_of(workload)["metadata"]["labels"]):
            names = {each["name"] for each in container_of(workload)["ports"]}
            wanted = {each["targetPort"] for each in service["spec"]["ports"]}

            assert wanted <= names or "driver" in wanted


@pytest.mark.parametrize("workload", every("StatefulSet"), ids=name_of)
def test_instances_have_names_in_a_service_without_an_address(workload: Manifest) -> None:
    services = {service_of(each): each["spec"] for each in every("Service")}

    assert services[workload["spec"]["serviceName"]]["clusterIP"] == "None"


def test_the_edges_ask_the_query_service_by_the_name_of_all_instances() -> None:
    [service] = [each for each in every("Service", MANIFESTS) if service_of(each) == "query-service"]
    [port] = [each["port"] for each in service["spec"]["ports"] if each["name"] == "grpc"]

    assert values_of(edges())["WS_EDGE_QUERY_ADDRESSES"] == f"query-service:{port}"
    assert service["spec"]["clusterIP"] == "None"


def test_the_gateway_finds_all_ready_edges_by_one_name() -> None:
    kong = yaml.safe_load((ROOT / "infra" / "kong" / "kong.yaml").read_text())
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]
    [service] = [each for each in every("Service") if service_of(each) == "ws-edge"]
    [port] = service["spec"]["ports"]
    targets = {each["target"] for upstream in kong["upstreams"] for each in upstream["targets"]}

    assert targets == {f"ws-edge:{port['port']}", "query-service:50051"}
    # An address is that of a pod, so the port must be the pod's, too.
    assert {"name": port["targetPort"], "containerPort": port["port"]} in container_of(edges())["ports"]
    assert service["spec"]["clusterIP"] == "None"
    assert "publishNotReadyAddresses" not in service["spec"]
    assert service["metadata"]["namespace"] == gateway["metadata"]["namespace"]
    # Neither searches elsewhere nor an SRV record changes the meaning of the name.
    assert "dnsConfig" not in pod_of(gateway)["spec"]
    assert "SRV" not in values_of(gateway)["KONG_DNS_ORDER"].split(",")


@pytest.mark.parametrize("file", ["kong/kong.yaml", "charts/statecast/templates/kong.yaml"])
def test_no_file_of_the_gateway_knows_how_many_edges_there_are(file: str) -> None:
    assert not re.search(r"ws-edge-\d", (ROOT / "infra" / file).read_text())


def test_the_gateway_notices_before_the_cluster_that_an_edge_is_not_ready() -> None:
    """Else the name would have no address when all edges lose the query service, and Kong would not ask soon."""
    kong = yaml.safe_load((ROOT / "infra" / "kong" / "kong.yaml").read_text())
    probe = container_of(edges())["readinessProbe"]
    notice_ms = SETTINGS["ws-edge"].model_fields["drain_notice_ms"].default
    for upstream in kong["upstreams"]:
        checks = upstream["healthchecks"]["active"]
        if upstream["name"] == "query-service":
            continue

        assert checks["http_path"] == probe["httpGet"]["path"]
        assert checks["unhealthy"]["http_failures"] * checks["healthy"]["interval"] * 1000 < notice_ms
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 300


def test_an_update_leaves_an_edge_that_the_gateway_knows() -> None:
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]
    of_the_cluster = 5  # the TTL of the cluster's own records

    assert edges()["spec"]["minReadySeconds"] >= of_the_cluster + 2 * int(values_of(gateway)["KONG_DNS_VALID_TTL"])


def edges() -> Manifest:
    [workload] = [each for each in OURS if service_of(each) == "ws-edge"]
    return workload


def test_what_the_manifests_refer_to_is_declared_or_made_by_a_command_of_the_readme() -> None:
    readme = (ROOT / "infra" / "charts" / "README.md").read_text()
    text = yaml.safe_dump_all(EVERY, width=1000)
    maps = set(re.findall(r"configMap:\s+name: (\S+)", text))
    secrets = set(re.findall(r"(?:secretKeyRef:\s+key: \S+\s+name|secretName): (\S+)", text))
    declared = {service_of(each) for each in every("ConfigMap")}

    assert maps | secrets <= MADE_BY_HAND | declared
    assert secrets == MADE_BY_HAND
    for name in MADE_BY_HAND:
        assert re.search(rf"create (configmap|secret \w+) {name} ", readme), name


def spark_options() -> dict[str, str]:
    [spark] = [each["data"]["spark-defaults.conf"] for each in every("ConfigMap") if "spark" in service_of(each)]
    return dict(line.split(None, 1) for line in spark.splitlines() if line and not line.startswith("#"))


def test_executors_run_the_spark_that_the_driver_is() -> None:
    version = re.search(r"^pyspark==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    options = spark_options()
    [driver] = [each for each in every("StatefulSet", WITH_EXECUTORS) if service_of(each) == "stream-processor"]
    ports = {each["name"]: str(each["containerPort"]) for each in container_of(driver)["ports"]}
    paths = {each["mountPath"] for each in container_of(driver)["volumeMounts"]}
    namespace = driver["metadata"]["namespace"]
    claim = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoints"

    assert version is not None
    assert options["spark.kubernetes.executor.container.image"] == f"apache/spark:{version[1]}"
    assert (options["spark.driver.port"], options["spark.blockManager.port"]) == (ports["driver"], ports["blocks"])
    assert options["spark.driver.host"] == f"stream-processor-0.stream-processor.{namespace}.svc.cluster.local"
    # Else executors get the address that the driver binds.
    assert options["spark.kubernetes.executor.useDriverPodIP"] == "false"
    assert options["spark.kubernetes.namespace"] == namespace
    assert options[f"{claim}.mount.path"] in paths
    assert options[f"{claim}.options.claimName"] in {service_of(each) for each in every("PersistentVolumeClaim")}


def test_an_executor_may_write_where_its_image_works() -> None:
    [template] = [each["data"]["executor.yaml"] for each in every("ConfigMap") if "spark" in service_of(each)]
    pod = yaml.safe_load(template)["spec"]
    [mount] = pod["containers"][0]["volumeMounts"]

    assert mount["mountPath"] == "/opt/spark/work-dir"
    assert {"name": mount["name"], "emptyDir": {}} in pod["volumes"]


@pytest.mark.parametrize("files", [MANIFESTS, WITH_EXECUTORS], ids=["one pod", "executors"])
def test_two_cores_are_enough_for_the_demonstration(files: list[Manifest]) -> None:
    asked = sum(
        millicores(container_of(each)["resources"]["requests"]["cpu"]) * int(each["spec"].get("replicas", 1))
        for each in files
        if each["kind"] in WORKLOADS
    )
    if files is WITH_EXECUTORS:
        options = spark_options()
        cores = options["spark.kubernetes.executor.request.cores"]
        asked += millicores(cores) * int(options["spark.executor.instances"])

    assert asked <= 2_000


def millicores(cpu: str) -> int:
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)


def test_the_gateways_workers_fit_its_memory_and_its_sockets_end_in_time() -> None:
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]
    container, workers = container_of(gateway), int(values_of(gateway)["KONG_NGINX_WORKER_PROCESSES"])
    command = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    wait, timeout = map(int, re.findall(r"\d+", command))

    assert container["resources"]["limits"]["memory"] == "1Gi"
    assert workers * 135 < 1024 / 2
    # It takes some seconds more than its own timeout.
    assert pod_of(gateway)["spec"]["terminationGracePeriodSeconds"] >= wait + timeout + 15


def test_the_gateways_status_is_scraped_from_within_only() -> None:
    ports = {service_of(each): {port["name"] for port in each["spec"]["ports"]} for each in every("Service")}

    assert ports["kong"] == {"https"}
    assert ports["kong-status"] == {"status"}
