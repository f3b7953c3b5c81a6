"""What the edges of a stack say of themselves, and which of them a socket came to."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from drivers.waiting import eventually, scaled
from local_stack.running_stack import RunningStack

SOCKETS = "ws_edge_sockets"
OPENED = "ws_edge_sockets_opened_total"


@dataclass(frozen=True)
class EdgeMetrics:
    """The metrics of one edge."""

    name: str
    url: str

    def value(self, metric: str, **labels: str) -> float:
        """The sum of the samples that have the labels."""
        with urlopen(self.url, timeout=scaled(5)) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        samples = (sample for family in families for sample in family.samples if sample.name == metric)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def edges_of(stack: RunningStack) -> list[EdgeMetrics]:
    """The metrics of all edges."""
    return [EdgeMetrics(edge.name, edge.metrics) for edge in stack.file.edges]


def opened_at(edges: list[EdgeMetrics]) -> Mapping[EdgeMetrics, float]:
    """How many sockets each edge has opened so far."""
    return {edge: edge.value(OPENED) for edge in edges}


def edge_of_the_next(before: Mapping[EdgeMetrics, float]) -> EdgeMetrics:
    """The edge that the one socket came to which has been opened since `before`, by `opened_at`."""

    def grown() -> EdgeMetrics:
        edges = [edge for edge, count in before.items() if edge.value(OPENED) > count]
        assert len(edges) == 1
        return edges[0]

    return eventually(grown)
