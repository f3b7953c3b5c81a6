"""The edge answers every call by REST with a document, or with an error that its interface names."""

from typing import Any, NamedTuple
from urllib.parse import quote

from httpx import URL, AsyncClient, Response
from hypothesis import given
from hypothesis import strategies as st
from inputs.documents import damaged_text, mutated, text_of
from inputs.messages import damaged_bytes, sound_or_odd
from inputs.profiles import fuzz
from inputs.texts import odd_numbers, odd_texts
from rigs.edge_errors import STATUSES
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import GROUP, ORDER

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

FRAMEWORK = frozenset({(422, "wrong_parameter"), (400, "refused"), (404, "not_found"), (405, "refused")})
"""The refusals by the framework before a call is reached; the interface has 400, 404 and 422."""

PAGE = ("group", "group_from", "group_to", "sort_from", "sort_to", "limit", "reverse", "fields", "page_token")
stores = sound_or_odd(st.sampled_from(("orders-by-key", "orders-by-customer", "orders-by-item")), odd_texts)
groups = sound_or_odd(st.sampled_from((GROUP, ORDER)), odd_texts)
numbers = st.none() | st.integers(0, 100) | odd_numbers
sorts = sound_or_odd(st.sampled_from(("", "03")), odd_texts)
fields = st.lists(sound_or_odd(st.just("order_id"), odd_texts), max_size=3)
bounds = {"sort_from": sorts, "sort_to": sorts, "limit": numbers, "reverse": st.booleans(), "fields": fields}
steps = st.fixed_dictionaries(
    {"store": stores, "group_field": sound_or_odd(st.just("order_id"), odd_texts)}, optional=bounds
)
of_sockets = {"id": numbers, "token": odd_texts, "channel": odd_texts}
watches = st.fixed_dictionaries(
    {"store": stores, "group": groups},
    optional={
        **bounds,
        "steps": st.lists(steps, max_size=4),
        "delta": st.booleans(),
        "times": st.booleans(),
        "interval_ms": numbers,
    },
)
names = sound_or_odd(st.just("q"), odd_texts)
NAMED = st.fixed_dictionaries(
    {"watch": sound_or_odd(watches, st.fixed_dictionaries({"store": stores}, optional=of_sockets))},
    optional={"name": names},
)
REVOKED = st.fixed_dictionaries({"consumer": sound_or_odd(st.just("mallory"), odd_texts)})


NOTHING: st.SearchStrategy[Any] = st.none()


class Operation(NamedTuple):
    """A call of the interface, with the parameters that its query may have and a sound body."""

    method: str
    path: str
    parameters: tuple[str, ...] = ()
    body: st.SearchStrategy[Any] = NOTHING


READS = (
    Operation("GET", "/update/orders/{order}"),
    Operation("GET", "/v1/consumer"),
    Operation("GET", "/v1/stores"),
    Operation("GET", "/v1/stores/{store}/rows", PAGE),
    Operation("GET", "/v1/stores/{store}/rows", ("group", "sort_from", "sort_to", "limit", "reverse")),
    Operation("GET", "/v1/stores/{store}/rows", ("group_from", "group_to", "limit", "page_token")),
    Operation("GET", "/v1/edge"),
    Operation("GET", "/v1/shards"),
    Operation("GET", "/v1/nowhere"),
)
CHANGES = (
    Operation("POST", "/v1/tickets"),
    Operation("POST", "/v1/channels"),
    Operation("GET", "/v1/channels/{channel}"),
    Operation("DELETE", "/v1/channels/{channel}"),
    Operation("PUT", "/v1/channels/{channel}/watches/{name}", body=NAMED),
    Operation("DELETE", "/v1/channels/{channel}/watches/{name}"),
    Operation("POST", "/v1/revocations", body=REVOKED),
    Operation("DELETE", "/v1/revocations/{consumer}"),
)
LIVE = "LIVE"
"""Stands for a channel that is there."""

PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "order": st.just(ORDER),
    "store": st.sampled_from(("orders-by-key", "orders-by-customer", "orders-by-item")),
    "group": st.sampled_from((GROUP, ORDER, "gone")),
    "group_from": st.sampled_from(("", GROUP)),
    "group_to": st.sampled_from(("", ORDER)),
    "channel": st.just(LIVE),
    "consumer": st.just("mallory"),
    "limit": st.integers(0, 5),
    "page_token": odd_texts,
    "reverse": st.booleans(),
    "sort_from": st.sampled_from(("", "03")),
    "sort_to": st.sampled_from(("", "05")),
    "fields": st.just("order_id"),
    "name": st.just("q"),
}


HEADERS = {
    "If-None-Match": st.sampled_from((b"*", b'"7-0"', b'W/"7-1", x', b"\xff\xe9", b",,,")),
    "X-Consumer-Groups": st.just(b"staff"),
}


class Call(NamedTuple):
    """One call; `path` is encoded as it goes over the wire."""

    method: str
    path: str
    headers: dict[str, bytes]
    body: bytes


def odd(name: str) -> st.SearchStrategy[str]:
    """Returns a value of a parameter, encoded: mostly a sound one."""
    values = sound_or_odd(PARAMETERS[name], odd_texts | odd_numbers).map(lambda value: quote(str(value), safe=""))
    return sound_or_odd(values, st.binary(max_size=9).map(lambda data: quote(data, safe="")))


@st.composite
def calls(draw: st.DrawFn, operations: tuple[Operation, ...]) -> Call:
    operation = draw(st.sampled_from(operations))
    path = operation.path
    for name in PARAMETERS:
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", draw(odd(name)))
    others = st.lists(st.sampled_from(sorted(PARAMETERS)), max_size=4)
    names = draw(sound_or_odd(st.just(operation.parameters), others))
    query = "&".join(f"{name}={draw(odd(name))}" for name in names)
    types = sound_or_odd(st.just(b"application/json"), st.sampled_from((b"", b"a/b", b"\xff")))
    headers = {"Content-Type": draw(types), **draw(st.fixed_dictionaries({}, optional=HEADERS))}
    methods = st.sampled_from(("GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE"))
    method = draw(sound_or_odd(st.just(operation.method), methods))
    changed = mutated(operation.body).map(text_of)
    encoded = (operation.body.map(text_of) | changed | damaged_text(changed)).map(str.encode)
    body = draw(sound_or_odd(encoded, damaged_bytes(encoded))) if method not in ("GET", "HEAD") else b""
    return Call(method, f"{path}?{query}" if query else path, headers, body)


def check(response: Response) -> None:
    """A document, or an error that is named."""
    if response.status_code < 400 or response.request.method == "HEAD":
        return
    error = response.json()["error"]
    assert (response.status_code, error["code"]) in STATUSES | FRAMEWORK, error
    assert error["message"]


async def exchange(edge: RunningEdge, call: Call) -> None:
    """Makes the call and then a sound one, which must be answered with its order."""
    base = f"http://{edge.address}"
    async with AsyncClient(headers=edge.headers(), verify=False) as client:
        path = call.path
        if LIVE in path:
            path = path.replace(LIVE, (await client.post(f"{base}/v1/channels")).json().get("channel", "gone"))
        address = URL(base).copy_with(raw_path=path.encode())
        headers = {name.encode(): value for name, value in call.headers.items()}
        check(await client.request(call.method, address, headers=headers, content=call.body))
        good = await client.get(f"{base}/update/orders/{ORDER}")

    assert good.status_code == 200, good.text
    assert good.json()["data"]["order_id"] == ORDER


@fuzz(2)
@given(calls(READS))
def test_calls_that_read(edge: RunningEdge, loop: Loop, log: Log, call: Call) -> None:
    loop.run(exchange(edge, call))

    log.assert_clean()


@fuzz(3)
@given(calls(CHANGES))
def test_calls_that_change(keeping_edge: RunningEdge, loop: Loop, log: Log, call: Call) -> None:
    keeping_edge.query.put(StoreKey("orders-by-key", ORDER), Order(order_id=ORDER, customer_id=GROUP))
    loop.run(exchange(keeping_edge, call))

    log.assert_clean()
