"""The calls that are for staff alone: revocations, the shard map, and the report of this edge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from pydantic import Field

from ws_edge.channels.revocations import RevocationLog
from ws_edge.http.rest import Document, Identify, PositionDocument, failures, message_document
from ws_edge.metrics import AGE_BUCKETS, Metrics
from ws_edge.model.authorization import check_staff, principal_of
from ws_edge.upstream.query_client import QueryClient

GAUGES = ("sockets", "subscriptions", "unique_keys")
TOTALS = ("frames_sent", "skipped", "polled_keys", "changed_keys", "failed_keys", "sockets_opened")


class ReplicaDocument(Document):
    """One instance that serves a partition."""

    instance: str
    address: str
    rank: int = Field(description="1 for the owner.")
    serving: bool
    lag_records: str
    lag_ms: str
    current_through: PositionDocument | None = None


class ShardDocument(Document):
    """One partition of a store."""

    store: str
    partition: int
    replicas: list[ReplicaDocument]


class PrivateFieldDocument(Document):
    """A part of the rows that not all of their readers may see."""

    path: list[str]
    owner: str


class StoreDocument(Document):
    """One store, as ListShards has it."""

    store: str
    topic: str
    message: str
    partitions: int
    owner: str
    history: bool
    partitioner: str
    misplaced: str = Field(
        description="Why lookups of some keys, or of all, are refused: they stand in other partitions than the "
        "partitioner says. Empty when none are."
    )
    readers: str
    group_is_owner: bool
    private_fields: list[PrivateFieldDocument]
    members: bool
    description: str
    interval_ms: int


class ShardMapDocument(Document):
    """The shard map as an instance of the query service sees it."""

    stores: list[StoreDocument]
    shards: list[ShardDocument]
    version: str = Field(description="Stands for all but lag and positions; base64.")
    without_topic: list[StoreDocument] = Field(description="Stores whose topic is not known yet.")


class TotalsDocument(Document):
    """Counted since the edge has started."""

    frames_sent: int
    skipped: int = Field(description="Versions replaced by newer ones before a slow client took them.")
    polled_keys: int
    changed_keys: int
    failed_keys: int
    sockets_opened: int
    stalled_sockets: int = Field(description="Sockets closed because their client did not read.")


class AgesDocument(Document):
    """How old changes were, from the commit at the source, when their frames were handed to sockets."""

    bounds_s: list[float] = Field(description="Upper bounds, in seconds, rising.")
    counts: list[int] = Field(description="Changes per bound, each counted once; last those above all bounds.")


class EdgeDocument(Document):
    """What the edge that answers is doing."""

    instance: str
    uptime_s: float
    not_ready: str | None = Field(description="Why it should get no traffic; null when it is ready.")
    sockets: int
    subscriptions: int
    unique_keys: int = Field(description="Keys that are watched: what is read, however many watch.")
    totals: TotalsDocument
    ages: AgesDocument


class RevocationRequest(Document):
    """Whose access is to end."""

    consumer: str = Field(min_length=1, description="The consumer's custom id.")
    username: bool = Field(False, description="Whether `consumer` is the username of one without a custom id.")


class RevocationDocument(Document):
    """A revocation."""

    consumer: str
    revoked_at: str = Field(description="RFC 3339.")


@dataclass
class EdgeReport:
    """Reads the metrics of an edge. `not_ready` returns why the edge should get no traffic, or None."""

    instance: str
    metrics: Metrics
    not_ready: Callable[[], str | None]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def document(self) -> dict[str, Any]:
        """An EdgeDocument. Its totals only rise, so two reports give the rates between them."""

        def sample(name: str, labels: dict[str, str] | None = None) -> int:
            return int(self.metrics.registry.get_sample_value(f"ws_edge_{name}", labels) or 0)

        return {
            "instance": self.instance,
            "uptime_s": self.clock() - self.started_at,
            "not_ready": self.not_ready(),
            **{name: sample(name) for name in GAUGES},
            "totals": {name: sample(f"{name}_total") for name in TOTALS}
            | {"stalled_sockets": sample("sockets_closed_total", {"reason": "stalled"})},
            "ages": {"bounds_s": list(AGE_BUCKETS), "counts": list(self.metrics.frames.ages)},
        }


@dataclass(frozen=True)
class StaffRest:
    """Answers staff, and raises ForbiddenError for everybody else. Every method raises EdgeError."""

    client: QueryClient
    revocations: RevocationLog
    report: EdgeReport
    identify: Identify

    def router(self) -> APIRouter:
        router = APIRouter(responses=failures())
        add, path, responses = router.add_api_route, "/v1/revocations", failures(400, 501)
        add("/v1/edge", self.get_edge, response_model=EdgeDocument)
        add("/v1/shards", self.list_shards, response_model=ShardMapDocument)
        add(
            path, self.revoke, methods=["POST"], status_code=201, response_model=RevocationDocument, responses=responses
        )
        add(path + "/{consumer}", self.lift, methods=["DELETE"], status_code=204, responses=responses)
        return router

    async def get_edge(self, request: Request) -> Response:
        """Answers staff with what this edge is doing. The gateway balances: ask again to hear of other edges."""
        check_staff(await self.identify(request), "the report of an edge")
        return JSONResponse(self.report.document())

    async def list_shards(self, request: Request) -> Response:
        """Answers staff with the stores, their partitions, who serves them, and how far each replica is."""
        check_staff(await self.identify(request), "the shard map")
        return JSONResponse(message_document(await self.client.list_shards()))

    async def revoke(self, request: Request, body: RevocationRequest) -> Response:
        """Staff only: refuses the consumer from now on, and closes the consumer's sockets with 4403."""
        check_staff(await self.identify(request), "revoking")
        revocation = await self.revocations.revoke(_principal(body.consumer, body.username))
        revoked_at = json_format.MessageToDict(revocation.revoked_at)
        return JSONResponse({"consumer": body.consumer, "revoked_at": revoked_at}, status_code=201)

    async def lift(self, request: Request, consumer: str, username: bool = False) -> Response:
        """Staff only: lets the consumer in again."""
        check_staff(await self.identify(request), "revoking")
        await self.revocations.lift(_principal(consumer, username))
        return Response(status_code=204)


def _principal(consumer: str, is_username: bool) -> str:
    return principal_of(consumer) if is_username else consumer
