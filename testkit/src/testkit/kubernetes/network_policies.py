"""Translates the network policies of a cluster into nftables rules for the pods of one node.

Pods are routed, so packets between two of them pass the node's prerouting hook, and so do packets from outside. By then
the address of a Service has become a pod's. Packets of the node itself, such as the kubelet's probes, do not pass it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

TABLE = "network_policies"
Direction = Literal["Ingress", "Egress"]
SIDES: Sequence[tuple[Direction, str]] = (("Egress", "saddr"), ("Ingress", "daddr"))
"""The address of a packet that is the pod's own."""
Object = dict[str, Any]


def selects(selector: Object, labels: Object) -> bool:
    """Returns whether a label selector selects an object with these labels; an empty one selects everything."""
    exact = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return exact and all(_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _holds(expression: Object, labels: Object) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"{expression['operator']!r} is no operator of a label selector")


@dataclass(frozen=True)
class Pod:
    """A pod that has an address of its own."""

    namespace: str
    name: str
    address: str
    labels: Object
    ports: Sequence[Object]

    def port_named(self, name: str, protocol: str) -> str | None:
        """Returns the number of a port; None when the pod has none of that name and protocol."""
        numbers = (
            each["containerPort"]
            for each in self.ports
            if each.get("name") == name and each.get("protocol", "TCP") == protocol
        )
        return next(map(str, numbers), None)


def pods_of(objects: Iterable[Object]) -> list[Pod]:
    """Returns those that have an address of their own and have not ended."""
    return [
        Pod(
            each["metadata"]["namespace"],
            each["metadata"]["name"],
            each["status"]["podIP"],
            each["metadata"].get("labels") or {},
            [port for container in each["spec"]["containers"] for port in container.get("ports") or []],
        )
        for each in objects
        if each["status"].get("podIP")
        and not each["spec"].get("hostNetwork")
        and each["status"].get("phase") not in ("Succeeded", "Failed")
    ]


@dataclass(frozen=True)
class NetworkPolicies:
    """The policies with the pods and namespaces of the cluster; `namespaces` has the labels of each."""

    namespaces: dict[str, Object]
    pods: Sequence[Pod]
    policies: Sequence[Object]

    def ruleset(self) -> str:
        """Returns rules that replace all earlier ones at once when `nft -f` reads them."""
        chains, jumps = [], []
        for pod in self.pods:
            for direction, side in SIDES:
                allowed = self.allowed(pod, direction)
                if allowed is None:
                    continue
                chain = f"{direction.lower()}_{pod.address.replace('.', '_')}"
                lines = [f"{match} return" for match in allowed]
                chains += [f"chain {chain} {{ # {pod.namespace}/{pod.name}", *lines, "counter drop", "}"]
                jumps.append(f"ip {side} {pod.address} jump {chain}")
        first = ["type filter hook prerouting priority filter; policy accept;", "ct state established,related accept"]
        body = [*chains, "chain packets {", *first, *jumps, "}"]
        return "\n".join([f"table ip {TABLE}", f"delete table ip {TABLE}", f"table ip {TABLE} {{", *body, "}", ""])

    def allowed(self, pod: Pod, direction: Direction) -> list[str] | None:
        """Returns the matches of packets that may reach or leave the pod; None when no policy applies to it."""
        policies = [each for each in self.policies if self._is_about(each, pod, direction)]
        if not policies:
            return None
        rules = [(each, rule) for each in policies for rule in each["spec"].get(direction.lower()) or []]
        return [match for policy, rule in rules for match in self._matches(policy, rule, pod, direction)]

    @staticmethod
    def _is_about(policy: Object, pod: Pod, direction: Direction) -> bool:
        spec = policy["spec"]
        directions = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        same = policy["metadata"]["namespace"] == pod.namespace
        return same and direction in directions and selects(spec.get("podSelector") or {}, pod.labels)

    def _matches(self, policy: Object, rule: Object, pod: Pod, direction: Direction) -> Iterator[str]:
        """Yields one rule of a policy, as expressions of nftables; a port's name is one of the pod that is reached."""
        address = "ip saddr" if direction == "Ingress" else "ip daddr"
        peers = rule.get("from" if direction == "Ingress" else "to") or []
        ports = rule.get("ports") or []
        if not peers:
            yield from _ports(ports, pod if direction == "Ingress" else None)
        by_ports: defaultdict[str, set[str]] = defaultdict(set)
        for peer in peers:
            if block := peer.get("ipBlock"):
                but = block.get("except") or []
                excluded = f" {address} != {{ {', '.join(but)} }}" if but else ""
                for match in _ports(ports, pod if direction == "Ingress" else None):
                    yield f"{address} {block['cidr']}{excluded} {match}"
                continue
            for other in self._selected(peer, policy["metadata"]["namespace"]):
                for match in _ports(ports, pod if direction == "Ingress" else other):
                    by_ports[match].add(other.address)
        for match, addresses in sorted(by_ports.items()):
            yield f"{address} {{ {', '.join(sorted(addresses))} }} {match}"

    def _selected(self, peer: Object, namespace: str) -> Iterator[Pod]:
        for pod in self.pods:
            if "namespaceSelector" in peer:
                in_namespace = selects(peer["namespaceSelector"], self.namespaces.get(pod.namespace, {}))
            else:
                in_namespace = pod.namespace == namespace
            if in_namespace and selects(peer.get("podSelector") or {}, pod.labels):
                yield pod


def _ports(ports: Sequence[Object], reached: Pod | None) -> Iterator[str]:
    """Yields an expression for each port of a rule; one that matches everything when it names none.

    Without a pod that is reached, a port's name means nothing.
    """
    if not ports:
        yield ""
    for each in ports:
        protocol = each.get("protocol", "TCP")
        number = each.get("port")
        if isinstance(number, str):
            number = reached.port_named(number, protocol) if reached else None
            if number is None:
                continue
        last = f"-{each['endPort']}" if "endPort" in each else ""
        yield f"meta l4proto {protocol.lower()}" if number is None else f"{protocol.lower()} dport {number}{last}"
