"""The sockets `/update/orders`: each order is a watch in the store of orders by key, sent in the earlier form."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from typing_extensions import override

from statecast.orders.v1.order_pb2 import OrderStatus
from statecast.push.v2.order_updates_pb2 import OrderUpdatesRequest
from statecast.push.v2.push_pb2 import ServerFrame
from ws_edge.codec.bodies import View, json_bytes, rfc3339
from ws_edge.codec.frames import Codec, PlaceFrame, Sink, wire
from ws_edge.codec.requests import ClientRequest, WatchRequest, one_line, values_of
from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.model.stores import FindStore, check_key_part
from ws_edge.watches.subscription import RowNews

STORE = "orders-by-key"
WATCH_TYPES = ("order_status_updates_request", "order_updates_request")
CANCEL_TYPE = "order_updates_cancel"
REFRESH_TYPE = "auth_refresh"
TYPES = (*WATCH_TYPES, CANCEL_TYPE, REFRESH_TYPE)
PARAMETERS = frozenset({"interval_ms", "token", "repeat"})
STATUS_WORDS = {number: name.removeprefix("ORDER_STATUS_").capitalize() for name, number in OrderStatus.items()}


@dataclass(slots=True)
class OrderWatch:
    """A watched order, and its repetition."""

    order_id: str
    repeat: bool
    interval_s: float = 0.0
    last: bytes | None = None
    """The frame to repeat."""
    timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Stops the repetition until the next frame."""
        if self.timer is not None:
            self.timer.cancel()


class OrderUpdates(Codec):
    """The codec of orders. It numbers their watches, and repeats an order's last frame while the edge sees it."""

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._watches: dict[int, OrderWatch] = {}
        self._numbers: dict[str, int] = {}
        self._blind: frozenset[int] = frozenset()
        self._last = 0

    @override
    def attach(self, sink: Sink) -> None:
        self._sink = sink

    @override
    def detach(self) -> None:
        self._sink = None
        for watch in self._watches.values():
            watch.stop()

    @override
    def read(self, event: Mapping[str, Any], find: FindStore) -> ClientRequest:
        try:
            document = json.loads(event.get("text") or event.get("bytes") or "")
        except (ValueError, RecursionError) as error:
            raise MalformedFrameError(f"the frame is not JSON: {one_line(error)}") from error
        request = _request(document)
        if request.type == REFRESH_TYPE:
            return ClientRequest(ticket=request.ticket)
        order_id = request.order_id or request.data.order_id
        if not order_id:
            raise MalformedFrameError("the order is missing: put it into data.order_id, or into order_id")
        if request.data.order_id not in ("", order_id):
            raise MalformedFrameError("data.order_id and order_id name two different orders: send one of them")
        if request.type != CANCEL_TYPE:
            return self._watch(order_id, request, find)
        number = self._numbers.get(order_id)
        if number is None and self._sink is not None:
            self._sink.put(_cancelled(order_id))  # also when it is not watched
        return ClientRequest([] if number is None else [number])

    def path_request(self, order_id: str, query_string: bytes, find: FindStore) -> ClientRequest:
        """Returns the request of an address. Raises MalformedFrameError."""
        query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        document: dict[str, Any] = {"type": WATCH_TYPES[-1]}
        for name in PARAMETERS.intersection(query):
            if len(query[name]) > 1:
                raise MalformedFrameError(f"the query parameter {name} is repeated: send it once")
            document[name] = {"true": True, "false": False}.get(query[name][0], query[name][0])
        return self._watch(order_id, _request(document), find)

    def _watch(self, order_id: str, request: OrderUpdatesRequest, find: FindStore) -> ClientRequest:
        """Begins to watch an order, in place of its previous watch if there is one."""
        check_key_part("order_id", order_id)
        interval_ms = request.interval_ms if request.HasField("interval_ms") else None
        if interval_ms is not None and (interval_ms < 0 or (request.repeat and not interval_ms)):
            raise MalformedFrameError("interval_ms must be 0 or more, and with repeat more than 0: or leave it out")
        question = Question(find(STORE), order_id)
        earlier, self._last = self._numbers.get(order_id), self._last + 1
        self._numbers[order_id], self._watches[self._last] = self._last, OrderWatch(order_id, request.repeat)
        token = "" if request.repeat else request.token  # else there would be nothing to repeat
        watch = WatchRequest(self._last, question, times=True, interval_ms=interval_ms, token=token)
        return ClientRequest([] if earlier is None else [earlier], [watch])

    @override
    def body(self, news: RowNews, view: View) -> bytes | None:
        return json_bytes(order_reply(news.state, view.times, news.skipped))

    @override
    def error_body(self, key: StoreKey, error: EdgeError) -> bytes:
        return json_bytes(_failure(error.code, str(error), key.group))

    @override
    def place_frames(self, frame: PlaceFrame) -> list[bytes]:
        watch = self._watches[frame.id]
        if frame.ended is not None:
            return self._ended(frame.id, frame.ended.code, frame.ended.message)
        if frame.watching is not None:
            watch.interval_s = frame.watching.interval_ms / 1000
        rows = list(frame.rows)
        if frame.watching is not None and not frame.watching.resumed and not rows:
            rows.append(json_bytes({"type": "order_status_update", "data": _data(watch.order_id, "Unknown")}))
        end = b',"token":"%b"}' % frame.token.encode() if frame.token else b"}"
        messages = [row[:-1] + end for row in rows]
        if messages and watch.repeat and watch.interval_s:
            document = json.loads(messages[-1])
            document.pop("skipped", None)
            watch.last = None if "error" in document else _frame(document)
            self._schedule(frame.id)
        return list(map(wire, messages))

    @override
    def socket_frame(self, frame: ServerFrame) -> bytes | None:
        if frame.HasField("ping"):
            self._blind = frozenset(number for each in frame.ping.blind for number in each.ids)
        if frame.HasField("access"):
            return _frame({"type": "authenticated", "expires_in_s": frame.access.expires_in_s})
        if frame.HasField("reconnect"):
            return _frame({"type": "reconnect", "delay_ms": frame.reconnect.delay_ms})
        return _frame(_failure(frame.error.code, frame.error.message, "")) if frame.HasField("error") else None

    def _ended(self, number: int, code: str, message: str) -> list[bytes]:
        watch = self._watches.pop(number)
        watch.stop()
        if self._numbers[watch.order_id] != number:
            return []  # it was asked for again
        del self._numbers[watch.order_id]
        return [_frame(_failure(code, message, watch.order_id)) if code else _cancelled(watch.order_id)]

    def _schedule(self, number: int) -> None:
        watch = self._watches[number]
        watch.stop()
        watch.timer = asyncio.get_running_loop().call_later(watch.interval_s, self._repeat, number)

    def _repeat(self, number: int) -> None:
        last, sink = self._watches[number].last, self._sink
        if last is not None and sink is not None and sink.is_idle and number not in self._blind:
            sink.put(last)
        self._schedule(number)


def order_reply(state: KeyState, times: bool, skipped: int = 0) -> dict[str, Any]:
    """Returns an OrderUpdatesReply of type order_status_update as proto3 JSON, without its token.

    `times` is whether it has the commit time.
    """
    order, data = state.row, _data(state.key.group, "Deleted")
    if order is not None:
        status = STATUS_WORDS.get(order.status, "Unspecified")
        data = _data(order.order_id, status, order.estimated_delivery, order.tracking_number)
    time = {"commit_time": rfc3339(state.commit_ns)} if times and state.commit_ns is not None else {}
    return {"type": "order_status_update", "data": data, **time, **({"skipped": str(skipped)} if skipped else {})}


def _request(document: Any) -> OrderUpdatesRequest:
    if not isinstance(document, dict):
        raise MalformedFrameError("the frame is not a JSON object")
    try:
        request = OrderUpdatesRequest(**values_of(document, OrderUpdatesRequest.DESCRIPTOR, []))
    except ValueError as error:
        raise MalformedFrameError(f"the request is not an OrderUpdatesRequest: {one_line(error)}") from error
    if request.type not in TYPES:
        raise MalformedFrameError(f"type is {request.type[:80]!r}: it must be one of {', '.join(TYPES)}")
    return request


def _data(order_id: str, status: str, delivery: str = "", tracking: str = "") -> dict[str, str]:
    return {"order_id": order_id, "status": status, "estimated_delivery": delivery, "tracking_number": tracking}


def _failure(code: str, message: str, order_id: str) -> dict[str, Any]:
    order = {"order_id": order_id} if order_id else {}
    return {"type": "error", "error": {"code": code, "message": message, **order}}


def _cancelled(order_id: str) -> bytes:
    return _frame({"type": "order_updates_cancelled", "data": _data(order_id, "")})


def _frame(document: dict[str, Any]) -> bytes:
    return wire(json_bytes(document))
