"""The frames of `/update/orders`: statecast.push.v1.OrderUpdatesRequest and OrderUpdatesReply as proto3 JSON."""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.push.v1.order_updates_pb2 import OrderUpdatesRequest
from ws_edge.dialects.frames import (
    CancelRequest,
    RangeDialect,
    RefreshRequest,
    Request,
    WatchRequest,
    check_interval,
    check_position,
    one_line,
    rfc3339,
    text_frame,
    text_of,
)
from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.hub.outbox import Reply
from ws_edge.hub.subscription import Subscription
from ws_edge.states import StoreKey, Version
from ws_edge.stores import check_key_part

STORE = "orders-by-key"
WATCH_TYPES = ("order_status_updates_request", "order_updates_request")
CANCEL_TYPE = "order_updates_cancel"
REFRESH_TYPE = "auth_refresh"
TYPES = (*WATCH_TYPES, CANCEL_TYPE, REFRESH_TYPE)
STATUS_WORDS = {number: name.removeprefix("ORDER_STATUS_").capitalize() for name, number in OrderStatus.items()}


class OrderFrames:
    """The dialect of orders. The reference of a request is its order id; a subscription is confirmed by its frames."""

    name = "order"
    ranges: RangeDialect | None = None

    def parse(self, event: Mapping[str, Any]) -> Request:
        """Reads a request in either form. Raises MalformedFrameError."""
        request = _request(text_of(event))
        if request.type not in TYPES:
            raise MalformedFrameError(f"type is {request.type[:80]!r}: it must be one of {', '.join(TYPES)}")
        if request.type == REFRESH_TYPE:
            return RefreshRequest(request.ticket, "")
        order_id = request.order_id or request.data.order_id
        if not order_id:
            raise MalformedFrameError("the order is missing: put it into data.order_id, or into order_id")
        if request.data.order_id not in ("", order_id):
            raise MalformedFrameError("data.order_id and order_id name two different orders: send one of them")
        check_key_part("order_id", order_id)
        key = StoreKey(STORE, order_id)
        if request.type == CANCEL_TYPE:
            return CancelRequest(key, order_id)
        try:
            interval = check_interval(request.interval_ms) if request.HasField("interval_ms") else None
            position = request.position
            after = check_position(position.epoch, position.offset) if request.HasField("position") else None
        except MalformedFrameError as error:
            error.reference = order_id
            raise
        return WatchRequest(key, after, interval, order_id)

    def changed(self, version: Version, skipped: int) -> Reply:
        """The frame for an order's state."""
        return text_frame(order_reply(version, skipped))

    def started(self, subscription: Subscription, recovered: bool) -> Reply | None:
        """Nothing: this dialect confirms by the order's state, or by silence when the client has it already."""

    def cancelled(self, request: CancelRequest) -> Reply:
        """The frame that ends a subscription."""
        data = {"order_id": request.reference, "status": "", "estimated_delivery": "", "tracking_number": ""}
        return text_frame({"type": "order_updates_cancelled", "data": data})

    def admitted(self, expires_at: float | None) -> Reply | None:
        """Nothing: whoever speaks this dialect knows their own token."""

    def authenticated(self, expires_at: float | None, reference: str) -> Reply:  # noqa: ARG002  there is no order
        """The frame that says until when access has been renewed."""
        until = {} if expires_at is None else {"expires_at": rfc3339(int(expires_at * 1e9))}
        return text_frame({"type": "authenticated", **until})

    def reconnect(self, delay_ms: int) -> Reply:
        """The frame that says when the socket will be closed."""
        return text_frame({"type": "reconnect", "delay_ms": delay_ms})

    def failed(self, error: EdgeError, reference: str) -> Reply:
        """The error frame; it names the order when the request did."""
        about = {"order_id": reference} if reference else {}
        return text_frame({"type": "error", "error": {"code": error.code, "message": str(error), **about}})


def order_reply(version: Version, skipped: int = 0) -> dict[str, Any]:
    """An OrderUpdatesReply of type order_status_update in proto3 JSON.

    It is written by hand because it is the hot path. All four fields of `data` are always there; `commit_time` is
    left out when none is known, and `skipped` when it is 0.
    """
    reply: dict[str, Any] = {
        "type": "order_status_update",
        "data": _view(version),
        "position": {"epoch": str(version.position.epoch), "offset": str(version.position.offset)},
    }
    if version.commit_ns is not None:
        reply["commit_time"] = rfc3339(version.commit_ns)
    if skipped:
        reply["skipped"] = str(skipped)
    return reply


def _view(version: Version) -> dict[str, str]:
    order = version.row
    if order is None:
        status = "Deleted" if version.deleted else "Unknown"
        return {"order_id": version.key.group, "status": status, "estimated_delivery": "", "tracking_number": ""}
    return {
        "order_id": order.order_id,
        "status": STATUS_WORDS.get(order.status, "Unspecified"),
        "estimated_delivery": order.estimated_delivery,
        "tracking_number": order.tracking_number,
    }


def _request(text: str) -> OrderUpdatesRequest:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedFrameError(f"the frame is not JSON: {one_line(error)}") from error
    if not isinstance(document, dict):
        raise MalformedFrameError("the frame is not a JSON object")
    try:
        return json_format.ParseDict(document, OrderUpdatesRequest())
    except json_format.ParseError as error:
        raise MalformedFrameError(f"the frame is not an OrderUpdatesRequest: {one_line(error)}") from error
