"""The metrics of a stack's edges, and the edge that a socket is connected to."""

from collections.abc import Mapping
from dataclasses import dataclass

from local_stack.running_stack import RunningStack
from testkit.service_process import StatusClient
from testkit.waiting import eventually

SOCKETS = "ws_edge_sockets"
OPENED = "ws_edge_sockets_opened_total"


@dataclass(frozen=True)
class EdgeMetrics(StatusClient):
    """The metrics of one edge."""

    name: str


def edges_of(stack: RunningStack) -> list[EdgeMetrics]:
    """Returns the metrics of all edges."""
    return [EdgeMetrics(edge.url, edge.name) for edge in stack.file.edges]


def opened_at(edges: list[EdgeMetrics]) -> Mapping[EdgeMetrics, float]:
    """Returns how many sockets each edge has opened so far."""
    return {edge: edge.metric(OPENED) for edge in edges}


def edge_of_the_next(before: Mapping[EdgeMetrics, float]) -> EdgeMetrics:
    """Returns the edge of the only socket that was opened since `before`, which `opened_at` returned."""

    def grown() -> EdgeMetrics:
        edges = [edge for edge, count in before.items() if edge.metric(OPENED) > count]
        assert len(edges) == 1
        return edges[0]

    return eventually(grown)
