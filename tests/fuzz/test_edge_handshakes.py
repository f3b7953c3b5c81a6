"""The edge answers a connection that begins with any bytes, and opens no socket that it should not."""

import asyncio
import json
from base64 import urlsafe_b64encode
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from inputs.documents import mutated, text_of
from inputs.messages import damaged_bytes
from inputs.profiles import fuzz
from inputs.texts import odd_numbers
from rigs.edge_errors import STATUSES
from rigs.log import Log
from rigs.loop import Loop
from rigs.query_service import ORDER

from testkit.ws_edge.edge import RunningEdge
from ws_edge.codec.frames import BINARY_SUBPROTOCOL

OPENED = 101
PLAIN = frozenset({400, 404, 405, 426, 431})
"""The statuses with which libraries below the edge answer requests that are no handshakes, as plain text."""
PATIENCE_S = 0.03
"""How long an answer is waited for that need not come, because the request does not end."""

HEADERS = (
    ("Host", b"localhost"),
    ("Upgrade", b"websocket"),
    ("Connection", b"Upgrade"),
    ("Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", b"13"),
    *((name, value.encode()) for name, value in RunningEdge().headers().items()),
)
MORE_HEADERS = (
    ("X-Gateway-Claims", b"none"),
    ("X-Consumer-Username", b"alice"),
    ("X-Forwarded-For", b"203.0.113.7"),
    ("Origin", b"http://localhost"),
    ("Sec-WebSocket-Protocol", BINARY_SUBPROTOCOL.encode()),
    ("Sec-WebSocket-Extensions", b"permessage-deflate; client_max_window_bits"),
    ("Sec-WebSocket-Protocol", b"statecast.ticket.x"),
    ("X-Correlation-ID", b"c-1"),
    ("Content-Length", b"0"),
    ("X-Other", b"x"),
)
TARGETS = (
    "/update/orders",
    f"/update/orders/{ORDER}",
    f"/update/orders/{ORDER}?token=AAAAAAAAAAcC&interval_ms=20&repeat=true",
    "/v1/stream",
    "/v1/tickets/stream?ticket=x",
    "/nowhere",
)

visible = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20)
"""The characters that a header may have."""
odd_headers = visible.map(lambda text: text.strip().encode("latin-1")) | st.sampled_from(
    (
        b"",
        b",",
        b"\xff\xfe",
        b"a" * 4_000,
        b"a" * 9_000,
        b'"',
        b"none",
        b"127.0.0.1, ::1, [",
        b"http://[",
        b"websocket, h2c",
        b"7",
    )
)
claims = mutated(st.just({"exp": 4_000_000_000, "iat": 1_000, "sub": "alice"})).map(
    lambda document: urlsafe_b64encode(text_of(document).encode()).rstrip(b"=")[:4_000]
)
parameters = st.lists(
    st.tuples(
        st.sampled_from(("token", "interval_ms", "repeat", "ticket", "x")),
        odd_numbers.map(str) | visible,
    ),
    max_size=3,
)


class Handshake(NamedTuple):
    """A request as bytes; `whole` unless a few of them were changed."""

    request: bytes
    whole: bool


def address_text(text: str) -> str:
    """Returns the text without characters that end an address; the others are sent unchanged."""
    return "".join(character for character in text if character not in ' \x7f\t\r\n\0#"<>\\^`{|}')


@st.composite
def handshakes(draw: st.DrawFn) -> Handshake:
    """Requests with up to three changes of their headers, and with an odd address now and then."""
    headers = list(HEADERS) + draw(st.lists(st.sampled_from(MORE_HEADERS), max_size=3))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(headers) - 1))
        name, value = headers[at]
        match draw(st.sampled_from(("drop", "repeat", "replace", "replace", "many"))):
            case "drop" if len(headers) > 1:
                del headers[at]
            case "repeat":
                headers.insert(draw(st.integers(0, len(headers))), (name, draw(st.just(value) | odd_headers)))
            case "many":
                headers += [("X-Many", b"x")] * draw(st.sampled_from((100, 150, 300)))
            case _:
                values = claims if name == "X-Gateway-Claims" else odd_headers
                headers[at] = (name, draw(values) if name != "Content-Length" else b"0")
    target = draw(st.sampled_from(TARGETS))
    if draw(st.booleans()):
        target += "&" if "?" in target else "?"
        target += address_text("&".join(f"{name}={value}" for name, value in draw(parameters)))
    request = f"GET {target} HTTP/1.1\r\n".encode("latin-1")
    request += b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers) + b"\r\n"
    damaged = draw(damaged_bytes(st.just(request)))
    return Handshake(damaged, damaged == request)


async def answer(edge: RunningEdge, handshake: Handshake) -> bytes | None:
    """Returns the head and body of the answer, or of the first frames of a socket; None when none came in time."""
    host, _, port = edge.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(handshake.request)
        async with asyncio.timeout(None if handshake.whole else PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            if b"content-length: " not in head.lower():
                return head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return head + await reader.readexactly(length)
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionResetError):
        return None
    finally:
        writer.transport.abort()


def check(response: bytes) -> None:
    """An opened socket, or an error that is named."""
    head, _, body = response.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    if status < 400:
        return
    if b"application/json" in head:
        assert (status, json.loads(body)["error"]["code"]) in STATUSES
    else:
        assert status in PLAIN, response


async def exchange(edge: RunningEdge, handshake: Handshake) -> None:
    """Sends the request, which is answered if it is whole; then a socket is opened in the usual way."""
    response = await answer(edge, handshake)
    assert response or not handshake.whole, "no answer"
    if response:
        check(response)
    good = b"GET /update/orders HTTP/1.1\r\n" + b"".join(
        name.encode() + b": " + value + b"\r\n" for name, value in HEADERS
    )
    opened = await answer(edge, Handshake(good + b"\r\n", whole=True))

    assert opened is not None
    assert int(opened.split(b" ")[1]) == OPENED


@fuzz(2)
@given(handshakes())
def test_handshakes(edge: RunningEdge, loop: Loop, log: Log, handshake: Handshake) -> None:
    loop.run(exchange(edge, handshake))

    log.assert_clean()
