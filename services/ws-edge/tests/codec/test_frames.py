"""Frames as they go over the wire: the pairs that all clients read, and the sizes that ADR 0057 promises."""

import json
from base64 import b64encode
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from statecast.odds.v1.market_pb2 import Market, Outcome
from statecast.push.v2.push_pb2 import (
    Access,
    Blind,
    Bookmark,
    ClientFrame,
    Ended,
    Hello,
    NamedWatch,
    Ping,
    Problem,
    Reconnect,
    ServerFrame,
    Watching,
)
from testkit.repository_files import FRAMES
from testkit.ws_edge.one_socket import message_of
from ws_edge.codec.bodies import View
from ws_edge.codec.frames import Codec, PlaceFrame, StreamCodec
from ws_edge.errors import RowTooLargeError
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.watches.subscription import RowNews

JSON, BINARY = StreamCodec(binary=False), StreamCodec(binary=True)
TOKEN = "Jz9e-15AsluOzz8"
PATH = ("match-000123",)
KEY = StoreKey("odds-by-match", "match-000123", "match winner", "market-000123-1")
VIEW = View(key_field="market_id", sort_field="name")
WATCHING = Watching(
    message="statecast.odds.v1.Market", key_field="market_id", sort_field="name", limit=20, interval_ms=1000
)


def market(suspended: bool = False) -> KeyState:
    odds = {"home": 1850, "draw": 3600, "away": 4200}
    outcomes = [Outcome(name=name, odds_thousandths=each) for name, each in odds.items()]
    row = Market(market_id="market-000123-1", match_id="match-000123", name="match winner", outcomes=outcomes)
    row.suspended = suspended
    row.updated_at.FromJsonString("2026-11-27T07:40:05.123456Z")
    return KeyState(KEY, Position(1, 5), row, commit_ns=1_795_765_205_123_456_000)


MARKET = market()
GONE = KeyState(KEY, Position(1, 6))


def place(codec: Codec, *news: RowNews, view: View = VIEW, **more: Any) -> Any:
    """Encodes a frame of watch 1."""
    rows = [body for each in news if (body := codec.body(each, view)) is not None]
    [frame] = codec.place_frames(PlaceFrame(1, rows=rows, **{"token": TOKEN} | more))
    return message_of(frame)


def socket(codec: Codec, frame: ServerFrame) -> Any:
    """Encodes a frame about the socket."""
    encoded = codec.socket_frame(frame)
    assert encoded is not None
    return message_of(encoded)


def names(*changed: str) -> frozenset[str]:
    return frozenset(changed)


DELTA, FEW = VIEW._replace(delta=True), View(("outcomes", "suspended"))
CHANGED = RowNews(MARKET, names("outcomes", "updated_at"))

SIZES = {
    "the row alone": (
        273,
        lambda: json.dumps(json.loads(place(JSON, CHANGED))["rows"][0]["row"], separators=(",", ":")),
    ),
    "the row alone, binary": (91, MARKET.row.SerializeToString),
    "the row whole": (325, lambda: place(JSON, CHANGED)),
    "with delta: its outcomes and time": (255, lambda: place(JSON, CHANGED, view=DELTA)),
    "with delta: suspended and time": (
        139,
        lambda: place(JSON, RowNews(market(True), names("suspended", "updated_at")), view=DELTA),
    ),
    "fields": (228, lambda: place(JSON, RowNews(MARKET, names("outcomes")), view=FEW)),
    "fields with delta": (212, lambda: place(JSON, RowNews(MARKET, names("outcomes")), view=FEW._replace(delta=True))),
    "as the step of a query": (349, lambda: place(JSON, CHANGED, path=PATH)),
    "as the step of a query, delta": (279, lambda: place(JSON, CHANGED, view=DELTA, path=PATH)),
    "the row whole, binary": (114, lambda: place(BINARY, CHANGED)),
    "a snapshot of 20 rows": (5822, lambda: place(JSON, *[RowNews(MARKET)] * 20, watching=WATCHING, current=True)),
    "resuming": (
        188,
        lambda: place(JSON, watching=Watching(resumed=True, **_fields(WATCHING)), current=True),
    ),
    "a ping": (11, lambda: socket(JSON, ServerFrame(ping=Ping()))),
    "a bookmark": (
        36,
        lambda: socket(JSON, ServerFrame(ping=Ping(bookmarks=[Bookmark(id=17, token=TOKEN)])))[22:-3] + ",",
    ),
}


def _fields(message: Watching) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


@pytest.mark.parametrize("name", SIZES)
def test_frames_have_the_sizes_that_the_decision_counts(name: str) -> None:
    size, make = SIZES[name]

    assert len(make()) == size


def edge_frames(codec: Codec) -> dict[str, Any]:
    """Returns frames of the edge, by the name of the case that they show."""
    times = VIEW._replace(times=True)
    left, error = RowNews(GONE), codec.error_body(KEY, RowTooLargeError("it is too large"))
    refusal = codec.place_frames(PlaceFrame(1, rows=[error], token=TOKEN))[0]
    ended = Ended(code="store_changed", message="odds-by-match has other readers now", retry_ms=2140)
    hello = Hello(protocol=2, expires_in_s=3600, ping_s=20, max_frame_bytes=1_000_000, max_request_bytes=65_536)
    hello.max_watches = 1000
    bookmarks = [Bookmark(id=3, path=["board"], token=TOKEN)]
    return {
        "hello": socket(codec, ServerFrame(hello=hello)),
        "a watch begins with all rows": place(codec, RowNews(MARKET), watching=WATCHING, current=True),
        "a watch resumes": place(codec, watching=Watching(resumed=True, **_fields(WATCHING)), current=True),
        "a row changes": place(codec, CHANGED),
        "a row changes, as a delta": place(codec, CHANGED, view=DELTA),
        "a field is gone": place(codec, RowNews(_without_time(), names("updated_at")), view=DELTA),
        "a row with its time, after versions that were left out": place(
            codec, RowNews(MARKET, names("name"), skipped=2), view=times
        ),
        "some fields of a row": place(codec, RowNews(MARKET), view=FEW),
        "a row leaves": place(codec, left),
        "a row cannot be shown": message_of(refusal),
        "rows that count later": place(codec, RowNews(MARKET), token=""),
        "a place below": place(codec, RowNews(MARKET), path=PATH, watching=WATCHING),
        "a place below ends": place(codec, path=PATH, token="", ended=Ended()),
        "a watch ends as asked for": place(codec, token="", ended=Ended()),
        "a watch ends for a reason": place(codec, token="", ended=ended),
        "ping": socket(codec, ServerFrame(ping=Ping())),
        "ping with news": socket(codec, ServerFrame(ping=Ping(bookmarks=bookmarks, blind=[Blind(ids=[1], lag_s=12)]))),
        "access": socket(codec, ServerFrame(access=Access(expires_in_s=3600))),
        "reconnect": socket(codec, ServerFrame(reconnect=Reconnect(delay_ms=3400))),
        "error": socket(codec, ServerFrame(error=Problem(code="malformed_frame", message="the frame is not JSON"))),
        "warning": socket(codec, ServerFrame(warning=Problem(code="unknown_field", message="limmit is unknown"))),
    }


def _without_time() -> KeyState:
    state = market()
    state.row.ClearField("updated_at")
    return state


CLIENT_FRAMES: dict[str, dict[str, Any]] = {
    "watch a range": {
        "watch": [
            {
                "id": 1,
                "store": "odds-by-match",
                "group": "match-000123",
                "sort_from": "a",
                "sort_to": "z",
                "limit": 20,
                "reverse": True,
                "fields": ["market_id", "suspended"],
                "delta": True,
                "times": True,
                "interval_ms": 0,
                "token": TOKEN,
            }
        ]
    },
    "watch a query": {
        "watch": [
            {
                "id": 2,
                "store": "matches-by-status",
                "group": "MATCH_STATUS_LIVE",
                "steps": [{"store": "odds-by-match", "group_field": "match_id", "limit": 50}],
                "token": TOKEN,
                "below": [{"path": list(PATH), "token": TOKEN}],
            }
        ]
    },
    "watch a channel": {"watch": [{"id": 3, "channel": "q1sFh0pXvT2mCw9aZk4LdA"}]},
    "end watches": {"unwatch": [1, 2]},
    "renew": {"renew": {"ticket": "eyJ2Ijox"}},
    "ping": {"ping": {}},
}


def test_all_clients_read_the_same_pairs_of_frames() -> None:
    """After a change of the frames: `python -m pytest -k pairs`, which writes the file anew when it is not there."""
    texts, contents = edge_frames(JSON), edge_frames(BINARY)
    edge = [
        {"shows": name, "json": json.loads(texts[name]), "binary": b64encode(contents[name]).decode()} for name in texts
    ]
    client = [
        {"shows": name, "json": frame, "binary": b64encode(encoded_request(frame)).decode()}
        for name, frame in CLIENT_FRAMES.items()
    ]
    pairs = {"edge": edge, "client": client}
    if not FRAMES.exists():
        FRAMES.write_text(json.dumps(pairs, indent=1, ensure_ascii=False) + "\n")

    assert json.loads(FRAMES.read_text()) == pairs


def encoded_request(frame: dict[str, Any]) -> bytes:
    return json_format.ParseDict(frame, ClientFrame()).SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "name", [name for name in edge_frames(JSON) if "row" not in name and "watch begins" not in name]
)
def test_frames_of_json_are_proto3_json_of_the_contract(name: str) -> None:
    text, content = edge_frames(JSON)[name], edge_frames(BINARY)[name]

    frame = ServerFrame.FromString(content)
    for row in frame.rows:
        row.ClearField("encoded")
        row.ClearField("changed")
    document = json.loads(text)
    for row in document.get("rows", ()):
        row.pop("row", None)
        row.pop("delta", None)
    assert json_format.ParseDict(document, ServerFrame()) == frame


def test_every_frame_of_json_can_be_read_by_the_contract() -> None:
    for text in edge_frames(JSON).values():
        json_format.Parse(text, ServerFrame())


def kinds_of(message: Any) -> set[int]:
    """Returns the kinds of the fields of a message and of those below it, but not of rows."""
    below = [field.message_type for field in message.fields if field.message_type and field.name != "rows"]
    return {field.cpp_type for field in message.fields}.union(*map(kinds_of, below))


@pytest.mark.parametrize("message", [ServerFrame, NamedWatch])
def test_frames_consist_of_what_is_the_same_in_json(message: type[Message]) -> None:
    """64-bit numbers, enums and well-known types are not: rows alone have them, and are written in their own way."""
    kinds = kinds_of(message.DESCRIPTOR)
    kind = FieldDescriptor

    assert kinds <= {kind.CPPTYPE_MESSAGE, kind.CPPTYPE_STRING, kind.CPPTYPE_BOOL, kind.CPPTYPE_UINT32}


def test_a_frame_of_many_rows_is_one_message() -> None:
    frame = ServerFrame.FromString(place(BINARY, *[RowNews(MARKET)] * 300))

    assert len(frame.rows) == 300
    assert Market.FromString(frame.rows[-1].encoded) == MARKET.row
