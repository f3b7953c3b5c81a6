"""On Kubernetes a pod may do, and be reached for, no more than it must."""

import pytest
import yaml
from rendered_charts import (
    EVERY,
    EXECUTORS,
    MANIFESTS,
    OURS,
    PODS,
    SERVERS,
    WITH_ALL,
    WITH_EXECUTORS,
    WITH_POSTGRES,
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
from service_facts import ROOT, in_compose, variables_of_image


def test_the_internal_port_is_for_instances_only() -> None:
    [policy] = [each for each in every("NetworkPolicy") if each["metadata"]["name"] == "query-service"]
    rules = [each for each in policy["spec"]["ingress"] if {"port": "shard"} in each["ports"]]

    assert rules == [
        {
            "from": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "query-service"}}}],
            "ports": [{"port": "shard"}],
        }
    ]


@pytest.mark.parametrize("workload", SERVERS, ids=name_of)
def test_nobody_reaches_a_server_but_by_its_policy(workload: Manifest) -> None:
    names = {each["containerPort"]: each["name"] for each in container_of(workload).get("ports", [])}
    labels = pod_of(workload)["metadata"]["labels"]
    files = WITH_EXECUTORS if workload in WITH_EXECUTORS else WITH_POSTGRES
    rules = [
        rule
        for policy in every("NetworkPolicy", files)
        if policy["spec"]["podSelector"] and selects(policy["spec"]["podSelector"], labels)
        for rule in policy["spec"].get("ingress", [])
    ]

    assert {names.get(port["port"], port["port"]) for rule in rules for port in rule["ports"]} == {*names.values()}
    assert service_of(workload) == "kong" or all(rule["from"] for rule in rules)


Way = tuple[str, str, str | int]
"""The pod that connects, the pod that it reaches, and the port."""


def ways(direction: str, peers: str, files: list[Manifest]) -> set[Way]:
    """Returns the connections between the pods of the files that the policies of one direction allow."""
    allowed: set[Way] = set()
    for policy in every("NetworkPolicy", files):
        own = pods(policy["spec"]["podSelector"], files)
        for rule in policy["spec"].get(direction, []):
            selectors = [each["podSelector"] for each in rule.get(peers, []) if "podSelector" in each]
            others = [pod for selector in selectors for pod in pods(selector, files)]
            pairs = [(pod, other) if direction == "egress" else (other, pod) for pod in own for other in others]
            allowed |= {(*pair, port["port"]) for pair in pairs for port in rule["ports"]}
    return allowed


def pods(selector: Manifest, files: list[Manifest]) -> list[str]:
    labels = labels_of_pods(files)
    return [each["app.kubernetes.io/name"] for each in labels if selects(selector, each)]


@pytest.mark.parametrize("files", [MANIFESTS, WITH_POSTGRES], ids=["one pod", "postgres"])
def test_what_a_pod_may_reach_is_what_lets_it_in(files: list[Manifest]) -> None:
    wanted = ways("ingress", "from", files)

    assert ("ws-edge", "query-service", "grpc") in wanted
    assert ways("egress", "to", files) == wanted


def test_none_but_the_simulator_and_the_connector_reach_the_database() -> None:
    to_database = {way for way in ways("ingress", "from", WITH_POSTGRES) if way[1] == "postgres"}

    assert to_database == {("cdc-simulator", "postgres", 5432), ("connect", "postgres", 5432)}
    assert ("connect", "kafka", 9092) in ways("egress", "to", WITH_POSTGRES)


@pytest.mark.parametrize("files", [WITH_ALL, EXECUTORS], ids=["all", "executors"])
def test_each_pod_has_a_policy_of_its_own_for_both_directions(files: list[Manifest]) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in every("NetworkPolicy", files)}

    for labels in labels_of_pods(files):
        own = policies[labels["app.kubernetes.io/name"]]
        assert selects(own["podSelector"], labels)
        assert own["policyTypes"] == ["Ingress", "Egress"]


def test_a_pod_without_a_policy_looks_names_up_and_nothing_else() -> None:
    [policy] = [each["spec"] for each in every("NetworkPolicy", MANIFESTS) if not each["spec"]["podSelector"]]
    [rule] = policy["egress"]

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    assert {each["port"] for each in rule["ports"]} == {53}


def test_who_may_create_pods_finds_no_secret_in_the_namespace() -> None:
    roles = [each for each in EVERY if each["kind"] in ("Role", "ClusterRole")]
    namespaces = {each["metadata"]["namespace"] for each in roles}
    readme = (ROOT / "infra" / "charts" / "README.md").read_text()

    assert namespaces == {"statecast-executors"}
    assert "secret" not in yaml.safe_dump_all(EXECUTORS).lower()
    assert "-n statecast-executors create secret" not in readme
    for role in roles:
        assert not any("secrets" in rule["resources"] or "*" in rule["resources"] for rule in role["rules"])


@pytest.mark.parametrize("workload", PODS, ids=name_of)
def test_a_pod_may_do_no_more_than_it_needs(workload: Manifest) -> None:
    pod, container = pod_of(workload)["spec"], container_of(workload)

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod.get("automountServiceAccountToken") is False or pod["serviceAccountName"] == service_of(workload)
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("workload", OURS, ids=name_of)
def test_a_pod_runs_as_its_images_user_and_writes_to_its_volumes(workload: Manifest) -> None:
    image = (ROOT / "services" / service_of(workload) / "Dockerfile").read_text()
    variables = {**variables_of_image(service_of(workload)), **values_of(workload)}
    read = {"SPARK_CONF_DIR", "STREAM_PROCESSOR_JARS", "WS_EDGE_DOMAINS"}
    written = [value for name, value in variables.items() if value.startswith("/") and name not in read]
    mounts = [each["mountPath"] for each in container_of(workload).get("volumeMounts", [])]

    assert f"USER {pod_of(workload)['spec']['securityContext']['runAsUser']}" in image
    assert written or service_of(workload) == "ws-edge"
    for path in written:
        assert any(path.startswith(f"{mount}/") for mount in mounts), path


@pytest.mark.parametrize("workload", PODS, ids=name_of)
def test_a_volume_is_declared_where_it_is_mounted(workload: Manifest) -> None:
    claims = workload["spec"].get("volumeClaimTemplates", [])
    declared = {each["name"] for each in pod_of(workload)["spec"].get("volumes", [])}
    declared |= {each["metadata"]["name"] for each in claims}
    mounted = {each["name"] for each in container_of(workload).get("volumeMounts", [])}

    assert mounted == declared


@pytest.mark.parametrize("workload", SERVERS, ids=name_of)
def test_a_pod_gets_at_least_the_time_to_stop_that_it_gets_in_compose(workload: Manifest) -> None:
    seconds = int(in_compose(service_of(workload))["stop_grace_period"].removesuffix("s"))

    assert pod_of(workload)["spec"]["terminationGracePeriodSeconds"] >= seconds


def test_the_gateways_file_with_the_consumers_credentials_is_a_secret() -> None:
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]
    volumes = {each["name"]: each for each in pod_of(gateway)["spec"]["volumes"]}

    assert volumes["declarative"]["secret"] == {"secretName": "kong"}
    assert not any("configMap" in each for each in volumes.values())


def test_clients_reach_the_gateway_by_https_alone() -> None:
    [entrance] = [each for each in every("Service") if each["spec"].get("type") == "LoadBalancer"]
    [gateway] = [each for each in SERVERS if service_of(each) == "kong"]

    assert "https" in {each["name"] for each in entrance["spec"]["ports"]}
    assert "http" not in {each["name"] for each in entrance["spec"]["ports"]}
    assert all("ssl" in each for each in values_of(gateway)["KONG_PROXY_LISTEN"].split(","))
