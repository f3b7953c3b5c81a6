"""The calls about revocations."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format

from ws_edge.authorization import check_staff
from ws_edge.shared.revocation_log import RevocationLog
from ws_edge.web.documents import RevocationDocument, RevocationRequest
from ws_edge.web.rest import Identify, failures

WHAT = "revoking"


class RevocationRest:
    """Answers when every edge can see what was asked for. Every method raises EdgeError."""

    def __init__(self, revocations: RevocationLog, identify: Identify) -> None:
        self._revocations = revocations
        self._identify = identify

    def router(self) -> APIRouter:
        """The routes with their documentation."""
        router = APIRouter(responses=failures(400, 501))
        path = "/v1/revocations"
        router.add_api_route(path, self.revoke, methods=["POST"], status_code=201, response_model=RevocationDocument)
        router.add_api_route(path + "/{consumer}", self.lift, methods=["DELETE"], status_code=204)
        return router

    async def revoke(self, request: Request, body: RevocationRequest) -> Response:
        """Staff only: refuses the consumer from now on, and closes the consumer's sockets with 4403."""
        check_staff(await self._identify(request), WHAT)
        revocation = await self._revocations.revoke(body.consumer)
        revoked_at = json_format.MessageToDict(revocation.revoked_at)
        return JSONResponse({"consumer": body.consumer, "revoked_at": revoked_at}, status_code=201)

    async def lift(self, request: Request, consumer: str) -> Response:
        """Staff only: lets the consumer in again."""
        check_staff(await self._identify(request), WHAT)
        await self._revocations.lift(consumer)
        return Response(status_code=204)
