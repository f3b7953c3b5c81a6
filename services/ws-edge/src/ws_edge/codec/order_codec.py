"""The frames of `/update/orders`, for its clients of before: each order is a watch of the store of orders by key."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from google.protobuf import json_format
from typing_extensions import override

from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.push.v2.order_updates_pb2 import OrderUpdatesRequest
from statecast.push.v2.push_pb2 import ServerFrame
from ws_edge.codec.bodies import RowNews, View, rfc3339
from ws_edge.codec.frames import Codec, Frame, PlaceFrame
from ws_edge.codec.requests import ClientRequest, WatchRequest, one_line
from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.model.stores import Stores, check_key_part, find

STORE = "orders-by-key"
WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
WATCH_TYPES = ("order_status_updates_request", "order_updates_request")
CANCEL_TYPE = "order_updates_cancel"
REFRESH_TYPE = "auth_refresh"
TYPES = (*WATCH_TYPES, CANCEL_TYPE, REFRESH_TYPE)
STATUS_WORDS = {number: name.removeprefix("ORDER_STATUS_").capitalize() for name, number in OrderStatus.items()}


class OrderCodec(Codec):
    """The codec of orders. It numbers the watches, and remembers which is of which order."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._orders: dict[int, str] = {}
        self._next = 1

    @override
    def read(self, event: Mapping[str, Any], stores: Stores) -> ClientRequest:
        request = _request(event)
        if request.type not in TYPES:
            raise MalformedFrameError(f"type is {request.type[:80]!r}: it must be one of {', '.join(TYPES)}")
        if request.type == REFRESH_TYPE:
            return ClientRequest(ticket=request.ticket)
        order_id = request.order_id or request.data.order_id
        if not order_id:
            raise MalformedFrameError("the order is missing: put it into data.order_id, or into order_id")
        if request.data.order_id not in ("", order_id):
            raise MalformedFrameError("data.order_id and order_id name two different orders: send one of them")
        if request.type == CANCEL_TYPE:
            return ClientRequest(unwatch=self._forget(order_id))
        interval_ms = request.interval_ms if request.HasField("interval_ms") else None
        return self.watch(order_id, interval_ms, request.token, stores)

    def watch(self, order_id: str, interval_ms: int | None, token: str, stores: Stores) -> ClientRequest:
        """Returns the request for an order, in place of an earlier one. Raises RequestError."""
        check_key_part("order_id", order_id)
        unwatch, number = self._forget(order_id), self._next
        self._next += 1
        self._ids[order_id], self._orders[number] = number, order_id
        store, key = find(stores, STORE), StoreKey(STORE, order_id)
        watch = WatchRequest(number, store, key, times=True, interval_ms=interval_ms, token=token)
        return ClientRequest(unwatch, [watch])

    def path_request(self, order_id: str, query_string: bytes, stores: Stores) -> ClientRequest:
        """Returns the request that an address makes. Raises RequestError."""
        query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        values, tokens = query.get("interval_ms"), query.get("token", [""])
        if values is not None and (len(values) > 1 or WHOLE_NUMBER.fullmatch(values[0]) is None):
            raise MalformedFrameError("the query parameter interval_ms is not one whole number")
        if len(tokens) > 1:
            raise MalformedFrameError("the query parameter token stands there twice: send the last token that came")
        return self.watch(order_id, None if values is None else int(values[0]), tokens[0], stores)

    @override
    def body(self, news: RowNews, view: View) -> bytes | None:
        return json.dumps(order_reply(news.state, news.skipped), ensure_ascii=False, separators=(",", ":")).encode()

    @override
    def error_body(self, key: StoreKey, error: EdgeError) -> bytes:
        return _encoded({"type": "error", "error": _problem(error.code, str(error), key.group)})

    @override
    def place_frames(self, frame: PlaceFrame) -> list[Frame]:
        order_id = self._orders.get(frame.id, "")
        if frame.ended is not None:
            del self._orders[frame.id]
            if self._ids.get(order_id, frame.id) != frame.id:
                return []  # it was asked for again
            self._ids.pop(order_id, None)
            if frame.ended.code:
                problem = _problem(frame.ended.code, frame.ended.message, order_id)
                return [_frame({"type": "error", "error": problem})]
            return [_frame({"type": "order_updates_cancelled", "data": _data(order_id, "")})]
        token = {"token": frame.token} if frame.token else {}
        if frame.watching is not None and not frame.watching.resumed and not frame.rows:
            return [_frame({"type": "order_status_update", "data": _data(order_id, "Unknown"), **token})]
        end = b"}" if not token else b',"token":"%b"}' % frame.token.encode()
        return [{"type": "websocket.send", "text": row[:-1] + end} for row in frame.rows]

    @override
    def socket_frame(self, frame: ServerFrame) -> Frame | None:
        if frame.HasField("access"):
            return _frame({"type": "authenticated", "expires_in_s": frame.access.expires_in_s})
        if frame.HasField("reconnect"):
            return _frame({"type": "reconnect", "delay_ms": frame.reconnect.delay_ms})
        if frame.HasField("error"):
            return _frame({"type": "error", "error": _problem(frame.error.code, frame.error.message, "")})
        return None

    def _forget(self, order_id: str) -> list[int]:
        number = self._ids.pop(order_id, None)
        return [] if number is None else [number]


def order_reply(state: KeyState, skipped: int = 0) -> dict[str, Any]:
    """Returns an OrderUpdatesReply of type order_status_update as proto3 JSON, without its token."""
    order = state.row
    data = _data(state.key.group, "Deleted")
    if order is not None:
        status = STATUS_WORDS.get(order.status, "Unspecified")
        data = _data(order.order_id, status, order.estimated_delivery, order.tracking_number)
    reply: dict[str, Any] = {"type": "order_status_update", "data": data}
    if state.commit_ns is not None:
        reply["commit_time"] = rfc3339(state.commit_ns)
    if skipped:
        reply["skipped"] = str(skipped)
    return reply


def _data(order_id: str, status: str, delivery: str = "", tracking: str = "") -> dict[str, str]:
    return {"order_id": order_id, "status": status, "estimated_delivery": delivery, "tracking_number": tracking}


def _problem(code: str, message: str, order_id: str) -> dict[str, str]:
    return {"code": code, "message": message, **({"order_id": order_id} if order_id else {})}


def _request(event: Mapping[str, Any]) -> OrderUpdatesRequest:
    text = event.get("text") or event.get("bytes") or ""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise MalformedFrameError("the frame is not a JSON object")
        request = json_format.ParseDict(document, OrderUpdatesRequest(), ignore_unknown_fields=True)
    except (ValueError, RecursionError, json_format.ParseError) as error:
        raise MalformedFrameError(f"the frame is not an OrderUpdatesRequest: {one_line(error)}") from error
    return request


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _frame(document: dict[str, Any]) -> Frame:
    return {"type": "websocket.send", "text": _encoded(document)}
