"""The calls for staff only: revocations, the shard map, and the report of this edge."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from statecast.push.v2.calls_pb2 import Ages, RevocationReply, RevocationRequest, Totals
from statecast.push.v2.calls_pb2 import EdgeReport as EdgeReportReply
from statecast.query.v1.query_service_pb2 import ListShardsResponse
from ws_edge.channels.revocations import RevocationLog
from ws_edge.errors import MalformedFrameError
from ws_edge.metrics import AGE_BUCKETS, Metrics
from ws_edge.model.authorization import check_staff, principal_of
from ws_edge.rest.messages import answer, body_of
from ws_edge.rest.openapi import answers, content_of
from ws_edge.rest.reads import Identify
from ws_edge.upstream.query_client import QueryClient

GAUGES = ("sockets", "subscriptions", "unique_keys")
TOTALS = ("frames_sent", "skipped", "polled_keys", "changed_keys", "failed_keys", "sockets_opened")


@dataclass
class EdgeReport:
    """Reads the metrics of an edge. `not_ready` returns why the edge should get no traffic, or None."""

    instance: str
    metrics: Metrics
    not_ready: Callable[[], str | None]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def read(self) -> EdgeReportReply:
        """Reads the metrics as they are now."""

        def sample(name: str, labels: dict[str, str] | None = None) -> int:
            return int(self.metrics.registry.get_sample_value(f"ws_edge_{name}", labels) or 0)

        totals = Totals(**{name: sample(f"{name}_total") for name in TOTALS})
        totals.stalled_sockets = sample("sockets_closed_total", {"reason": "stalled"})
        return EdgeReportReply(
            instance=self.instance,
            uptime_s=self.clock() - self.started_at,
            not_ready=self.not_ready(),
            totals=totals,
            ages=Ages(bounds_s=AGE_BUCKETS, counts=self.metrics.frames.ages),
            **{name: sample(name) for name in GAUGES},
        )


@dataclass(frozen=True)
class StaffRest:
    """Answers staff, and raises ForbiddenError for everybody else. Every method raises EdgeError."""

    client: QueryClient
    revocations: RevocationLog
    report: EdgeReport
    identify: Identify

    def router(self) -> APIRouter:
        router = APIRouter()
        add, path = router.add_api_route, "/v1/revocations"
        add("/v1/edge", self.get_edge, responses=answers(EdgeReportReply))
        add("/v1/shards", self.list_shards, responses=answers(ListShardsResponse))
        body = {"requestBody": {"required": True, **content_of(RevocationRequest)}}
        created = answers(RevocationReply, 400, 501, status=201)
        add(path, self.revoke, methods=["POST"], status_code=201, responses=created, openapi_extra=body)
        lifted = answers(None, 400, 501, status=204)
        add(path + "/{consumer:path}", self.lift, methods=["DELETE"], status_code=204, responses=lifted)
        return router

    async def get_edge(self, request: Request) -> Response:
        """Answers staff with the report of this edge. The gateway balances calls: ask again for other edges."""
        check_staff(await self.identify(request), "the report of an edge")
        return answer(self.report.read())

    async def list_shards(self, request: Request) -> Response:
        """Answers staff with the stores and their partitions, the replicas of each, and how far these are."""
        check_staff(await self.identify(request), "the shard map")
        return answer(await self.client.list_shards())

    async def revoke(self, request: Request) -> Response:
        """Staff only: refuses the consumer from now on, and closes the consumer's sockets with 4403."""
        check_staff(await self.identify(request), "revoking")
        body = await body_of(request, RevocationRequest)
        if not body.consumer:
            raise MalformedFrameError("consumer is empty: name the consumer by its custom id")
        revocation = await self.revocations.revoke(_principal(body.consumer, body.username))
        return answer(RevocationReply(consumer=body.consumer, revoked_at=revocation.revoked_at), 201)

    async def lift(self, request: Request, consumer: str, username: bool = False) -> Response:
        """Staff only: lifts the revocation of the consumer."""
        check_staff(await self.identify(request), "revoking")
        await self.revocations.lift(_principal(consumer, username))
        return Response(status_code=204)


def _principal(consumer: str, is_username: bool) -> str:
    return principal_of(consumer) if is_username else consumer
