"""An edge on a real port refuses calls and handshakes that say twice who calls, on public paths too."""

import asyncio

import pytest

from testkit.ws_edge.edge import RunningEdge

UPGRADE = (
    f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\n"
)
CALLS = ["/v1/consumer", "/docs", "/statecast.js", "/openapi.json"]
SOCKETS = ["/v1/stream", "/update/orders", "/v1/tickets/stream"]
TWICE = [
    ("X-Consumer-Custom-ID: customer-0002", "x-consumer-custom-id"),
    ("x-consumer-groups: staff", "x-consumer-groups"),
    ("X_Consumer_Groups: staff", "x-consumer-groups"),
    ("X-GATEWAY-CLAIMS: none", "x-gateway-claims"),
    ("X-Consumer_Username: operator", "x-consumer-username"),
]


async def answer_to(edge: RunningEdge, path: str, more: str, upgrade: str = "", body: str = "") -> str:
    """Returns the status line, headers and body of an answer to alice's headers from the gateway, and `more`."""
    host, port = edge.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    headers = "".join(f"{name}: {value}\r\n" for name, value in edge.headers().items())
    method = "POST" if body else "GET"
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: edge\r\n{headers}{upgrade}{more}\r\n{body}".encode("latin-1"))
    async with asyncio.timeout(30):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        sizes = [int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length:")]
        content = await reader.readexactly(sizes[0]) if sizes else b""
    writer.close()
    return head + content.decode()


async def test_calls_are_served_that_say_it_once(edge: RunningEdge) -> None:
    for path in CALLS:
        assert (await answer_to(edge, path, "")).startswith("HTTP/1.1 200 ")


async def test_what_says_twice_who_calls_is_refused(edge: RunningEdge) -> None:
    for more, name in TWICE:
        calls = [await answer_to(edge, path, f"{more}\r\n") for path in CALLS]
        sockets = [await answer_to(edge, path, f"{more}\r\n", UPGRADE) for path in SOCKETS]

        for answer in (*calls, *sockets):
            assert answer.startswith("HTTP/1.1 403 ")
            assert "gateway_required" in answer
            assert f"{name} was sent twice" in answer


async def test_two_ids_that_a_proxy_has_joined_are_nobody(edge: RunningEdge) -> None:
    edge_headers = edge.headers
    edge.headers = lambda *_, **__: edge_headers("customer-0001, customer-0002")  # type: ignore[method-assign]
    answers = [await answer_to(edge, "/v1/consumer", ""), await answer_to(edge, "/v1/stream", "", UPGRADE)]

    for answer in answers:
        assert answer.startswith("HTTP/1.1 403 ")
        assert "x-consumer-custom-id holds a comma" in answer


@pytest.mark.parametrize("count", [130, 1100])
async def test_more_headers_than_a_gateway_checks_are_refused(edge: RunningEdge, count: int) -> None:
    more = "".join(f"X-{number}: 1\r\n" for number in range(count))
    for path in (*CALLS, *SOCKETS):
        answer = await answer_to(edge, path, more, UPGRADE if path in SOCKETS else "")

        assert answer.startswith("HTTP/1.1 431 ")
        assert "too_many_headers" in answer


async def test_what_trails_a_body_is_no_header(edge: RunningEdge) -> None:
    body = "2\r\n{}\r\n0\r\nX-Consumer-Custom-ID: customer-0002\r\nX-Consumer-Groups: staff\r\n\r\n"
    answer = await answer_to(edge, "/v1/tickets", "Transfer-Encoding: chunked\r\n", body=body)
    refused = await answer_to(edge, "/v1/revocations", "Transfer-Encoding: chunked\r\n", body=body)

    assert answer.startswith("HTTP/1.1 200 ")
    assert refused.startswith(("HTTP/1.1 403 ", "HTTP/1.1 422 "))
