"""Network policies as nftables rules."""

from typing import Any

import pytest

from testkit.kubernetes.network_policies import Direction, NetworkPolicies, Pod, pods_of, selects

NAMESPACES = {"shop": {"name": "shop"}, "monitoring": {"name": "monitoring"}}


def pod(name: str, address: str, namespace: str = "shop", **ports: int) -> Pod:
    return Pod(
        namespace, name, address, {"app": name}, [{"name": name, "containerPort": port} for name, port in ports.items()]
    )


EDGE = pod("edge", "10.244.0.2", http=8080)
QUERY = pod("query", "10.244.0.3", grpc=50051, shard=50061)
SCRAPER = pod("scraper", "10.244.0.4", "monitoring")


def policy(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"podSelector": {"matchLabels": {"app": name}}, **spec},
    }


def allowed(direction: Direction, of: Pod, *policies: dict[str, Any]) -> list[str] | None:
    return NetworkPolicies(NAMESPACES, [EDGE, QUERY, SCRAPER], policies).allowed(of, direction)


def test_without_a_policy_of_a_direction_everything_is_allowed() -> None:
    ingress = policy("query", policyTypes=["Ingress"])

    assert allowed("Ingress", QUERY, ingress) == []
    assert allowed("Egress", QUERY, ingress) is None
    assert allowed("Ingress", EDGE, ingress) is None


def test_a_policy_without_types_is_of_egress_when_it_has_rules_of_it() -> None:
    assert allowed("Egress", QUERY, policy("query", ingress=[])) is None
    assert allowed("Egress", QUERY, policy("query", egress=[])) == []


def test_the_name_of_a_port_is_one_of_the_pod_that_is_reached() -> None:
    to_query = [{"to": [{"podSelector": {"matchLabels": {"app": "query"}}}], "ports": [{"port": "grpc"}]}]
    from_edge = [{"from": [{"podSelector": {"matchLabels": {"app": "edge"}}}], "ports": [{"port": "grpc"}]}]

    assert allowed("Egress", EDGE, policy("edge", policyTypes=["Egress"], egress=to_query)) == [
        "ip daddr { 10.244.0.3 } tcp dport 50051"
    ]
    assert allowed("Ingress", QUERY, policy("query", ingress=from_edge)) == ["ip saddr { 10.244.0.2 } tcp dport 50051"]


def test_a_port_that_the_pod_does_not_have_is_reached_by_nobody() -> None:
    assert allowed("Ingress", QUERY, policy("query", ingress=[{"ports": [{"port": "http"}]}])) == []


def test_pods_of_another_namespace_are_meant_by_its_labels_alone() -> None:
    named = {"matchLabels": {"name": "monitoring"}}
    everywhere = [{"from": [{"podSelector": {}}], "ports": [{"port": "grpc"}]}]
    scrapers = [{"from": [{"namespaceSelector": named}], "ports": [{"port": 9103}]}]

    assert allowed("Ingress", QUERY, policy("query", ingress=everywhere)) == [
        "ip saddr { 10.244.0.2, 10.244.0.3 } tcp dport 50051"
    ]
    assert allowed("Ingress", QUERY, policy("query", ingress=scrapers)) == ["ip saddr { 10.244.0.4 } tcp dport 9103"]


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, [""]),
        ({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}, ["udp dport 53", "tcp dport 53"]),
        ({"ports": [{"protocol": "TCP"}]}, ["meta l4proto tcp"]),
        ({"ports": [{"port": 1000, "endPort": 2000}]}, ["tcp dport 1000-2000"]),
        (
            {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]},
            ["ip daddr 10.0.0.0/8 tcp dport 443"],
        ),
        (
            {"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
            ["ip daddr 10.0.0.0/8 ip daddr != { 10.1.0.0/16 } "],
        ),
    ],
)
def test_rules_say_ports_and_addresses_in_many_ways(rule: dict[str, Any], matches: list[str]) -> None:
    assert allowed("Egress", EDGE, policy("edge", policyTypes=["Egress"], egress=[rule])) == matches


def test_the_rules_drop_what_no_policy_allows() -> None:
    from_edge = [{"from": [{"podSelector": {"matchLabels": {"app": "edge"}}}], "ports": [{"port": "grpc"}]}]
    rules = NetworkPolicies(NAMESPACES, [EDGE, QUERY], [policy("query", ingress=from_edge)]).ruleset().splitlines()
    chain = rules.index("chain ingress_10_244_0_3 { # shop/query")

    assert rules[chain + 1 : chain + 4] == ["ip saddr { 10.244.0.2 } tcp dport 50051 return", "counter drop", "}"]
    assert "ip daddr 10.244.0.3 jump ingress_10_244_0_3" in rules
    assert not any("10.244.0.2 jump" in each for each in rules)


@pytest.mark.parametrize(
    ("expression", "labels", "selected"),
    [
        ({"key": "app", "operator": "In", "values": ["edge"]}, {"app": "edge"}, True),
        ({"key": "app", "operator": "In", "values": ["edge"]}, {}, False),
        ({"key": "app", "operator": "NotIn", "values": ["edge"]}, {}, True),
        ({"key": "app", "operator": "Exists"}, {"app": ""}, True),
        ({"key": "app", "operator": "DoesNotExist"}, {"app": ""}, False),
    ],
)
def test_a_selector_has_expressions(expression: dict[str, Any], labels: dict[str, str], selected: bool) -> None:
    assert selects({"matchExpressions": [expression]}, labels) is selected


def test_pods_without_an_address_of_their_own_are_passed_over() -> None:
    def found(status: dict[str, str], **spec: Any) -> dict[str, Any]:
        return {"metadata": {"namespace": "shop", "name": "x"}, "status": status, "spec": {"containers": [], **spec}}

    objects = [
        found({"phase": "Pending"}),
        found({"phase": "Running", "podIP": "10.77.0.1"}, hostNetwork=True),
        found({"phase": "Succeeded", "podIP": "10.244.0.9"}),
        found({"phase": "Running", "podIP": "10.244.0.8"}),
    ]

    assert [each.address for each in pods_of(objects)] == ["10.244.0.8"]
