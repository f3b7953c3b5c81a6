"""The frames of `/update/orders`: statecast.push.v1.OrderUpdatesRequest and OrderUpdatesReply as proto3 JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from google.protobuf import json_format
from typing_extensions import override

from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.push.v1.order_updates_pb2 import OrderUpdatesRequest
from ws_edge.codec import frames
from ws_edge.codec.frames import CancelRequest, FrameCodec, RefreshRequest, Reply, Request, WatchRequest
from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.model.states import AnyKey, KeyState, Place, StoreKey
from ws_edge.model.stores import check_key_part

STORE = "orders-by-key"
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
WATCH_TYPES = ("order_status_updates_request", "order_updates_request")
CANCEL_TYPE = "order_updates_cancel"
REFRESH_TYPE = "auth_refresh"
TYPES = (*WATCH_TYPES, CANCEL_TYPE, REFRESH_TYPE)
STATUS_WORDS = {number: name.removeprefix("ORDER_STATUS_").capitalize() for name, number in OrderStatus.items()}


class OrderCodec(FrameCodec):
    """The codec of orders. The reference of a request is its order id.

    The order's state confirms a subscription, or silence when the client has it already. Clients know their own tokens.
    """

    name = "order"

    @override
    def parse(self, event: Mapping[str, Any]) -> Request:
        request = _request(frames.text_of(event))
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
        position = (request.position.epoch, request.position.offset) if request.HasField("position") else None
        interval_ms = request.interval_ms if request.HasField("interval_ms") else None
        return frames.watch_request(key, position, interval_ms, order_id, request.repeat)

    @override
    def changed(self, state: KeyState, skipped: int) -> Reply:
        return frames.text_frame(order_reply(state, skipped))

    @override
    def cancelled(self, key: AnyKey, reference: str, place: Place | None = None) -> Reply:
        data = {"order_id": reference, "status": "", "estimated_delivery": "", "tracking_number": ""}
        return frames.text_frame({"type": "order_updates_cancelled", "data": data})

    @override
    def authenticated(self, expires_at: float | None, reference: str) -> Reply:
        expiry = {} if expires_at is None else {"expires_at": frames.rfc3339(int(expires_at * 1e9))}
        return frames.text_frame({"type": "authenticated", **expiry})

    @override
    def reconnect(self, delay_ms: int) -> Reply:
        return frames.text_frame({"type": "reconnect", "delay_ms": delay_ms})

    @override
    def failed(self, error: EdgeError, reference: str) -> Reply:
        order = {"order_id": reference} if reference else {}
        return frames.text_frame({"type": "error", "error": {"code": error.code, "message": str(error), **order}})


def order_reply(state: KeyState, skipped: int = 0) -> dict[str, Any]:
    """An OrderUpdatesReply of type order_status_update in proto3 JSON.

    It is written by hand because it is the hot path. All four fields of `data` are always there; `commit_time` is
    left out when none is known, and `skipped` and `lag_ms` when they are 0.
    """
    reply: dict[str, Any] = {
        "type": "order_status_update",
        "data": _view(state),
        "position": {"epoch": str(state.position.epoch), "offset": str(state.position.offset)},
    }
    if state.commit_ns is not None:
        reply["commit_time"] = frames.rfc3339(state.commit_ns)
    if skipped:
        reply["skipped"] = str(skipped)
    if state.lag_ms:
        reply["lag_ms"] = str(state.lag_ms)
    return reply


def _view(state: KeyState) -> dict[str, str]:
    order = state.row
    if order is None:
        status = "Deleted" if state.deleted else "Unknown"
        return {"order_id": state.key.group, "status": status, "estimated_delivery": "", "tracking_number": ""}
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
        raise MalformedFrameError(f"the frame is not JSON: {frames.one_line(error)}") from error
    if not isinstance(document, dict):
        raise MalformedFrameError("the frame is not a JSON object")
    try:
        return json_format.ParseDict(document, OrderUpdatesRequest())
    except json_format.ParseError as error:
        raise MalformedFrameError(f"the frame is not an OrderUpdatesRequest: {frames.one_line(error)}") from error


def path_request(order_id: str, query_string: bytes) -> WatchRequest:
    """The subscription that an address asks for. Raises MalformedFrameError."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    check_key_part("order_id", order_id)
    names = ("position_epoch", "position_offset", "interval_ms")
    epoch, offset, interval = (_number(name, query.get(name)) for name in names)
    if (epoch is None) != (offset is None):
        raise MalformedFrameError("position_epoch and position_offset go together: send both, or none")
    position = None if epoch is None or offset is None else (epoch, offset)
    repeat = _flag("repeat", query.get("repeat"))
    return frames.watch_request(StoreKey(STORE, order_id), position, interval, order_id, repeat)


def _flag(name: str, values: list[str] | None) -> bool:
    if values not in (None, ["true"], ["false"]):
        raise MalformedFrameError(f"the query parameter {name} is neither true nor false")
    return values == ["true"]


def _number(name: str, values: list[str] | None) -> int | None:
    if values is None:
        return None
    if len(values) > 1 or WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise MalformedFrameError(f"the query parameter {name} is not one whole number")
    return int(values[0])
