"""Fields that only some see: the game of docs/examples/game, by calls, sockets, ranges, queries and channels."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from httpx import AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection

from statecast.descriptors import MessageTypes
from statecast.json_documents import document_of
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.private_fields import NOBODY, PrivateField, PrivateRow
from ws_edge.model.states import StoreKey

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "game"
TYPES = MessageTypes.read(EXAMPLE / "messages")
GAME = TYPES.message_class("game.v1.Game")
ALICE, BOB, CAROL = "customer-0001", "customer-0002", "customer-0003"
KEY = StoreKey("games-by-key", "g1")
RANGE = {"store": "games-by-table", "group": "t1"}
MEMBERS = """
  - {name: games-by-table, message: game.v1.Game, keeps: members, readers: everyone,
     private: [{path: hands, owner: player_id}, {path: invitation, owner: host_id}]}
"""


def game(turn: str = ALICE, hers: str = "ace") -> Message:
    hands = [{"player_id": ALICE, "cards": [hers]}, {"player_id": BOB, "cards": ["king"]}]
    document = {"game_id": "g1", "turn": turn, "hands": hands, "host_id": BOB, "invitation": "secret"}
    return json_format.ParseDict(document, GAME())


def cards(row: dict[str, Any]) -> dict[str, list[str]]:
    return {hand["player_id"]: hand["cards"] for hand in row.get("hands", [])}


def seen_json(row: PrivateRow, viewer: str) -> Any:
    seen = row.seen_by(viewer)
    assert isinstance(seen, Value)
    return document_of(seen)


@asynccontextmanager
async def game_edge() -> AsyncIterator[RunningEdge]:
    stores = (EXAMPLE / "stores.yaml").read_text() + MEMBERS
    settings: dict[str, Any] = {"STATECAST_DESCRIPTORS": EXAMPLE / "messages", "tick_ms": 5}
    async with RunningEdge(kafka=True, stores=stores, min_interval_ms=20, default_interval_ms=20, **settings) as edge:
        edge.query.put(KEY, game())
        edge.query.put(StoreKey("games-by-table", "t1", "1", "g1"), game())
        yield edge


@asynccontextmanager
async def caller(edge: RunningEdge, consumer: str, groups: str = "customers") -> AsyncIterator[AsyncClient]:
    headers = edge.headers(consumer, groups)
    async with AsyncClient(base_url=f"http://{edge.address}", headers=headers) as client:
        yield client


async def ask(socket: ClientConnection, **frame: Any) -> None:
    await socket.send(json.dumps(frame))


async def row_of(socket: ClientConnection) -> dict[str, Any]:
    """The row of the next frame that has one."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 60))
        event = frame.get("changed") or frame.get("range_changed") or {}
        if "row" in event:
            return dict(event["row"])


@pytest.mark.parametrize(
    ("consumer", "groups", "hands", "invitation"),
    [
        (ALICE, "customers", {ALICE: ["ace"]}, ""),
        (BOB, "customers", {BOB: ["king"]}, "secret"),
        (CAROL, "customers", {}, ""),
        ("", "staff", {ALICE: ["ace"], BOB: ["king"]}, "secret"),
    ],
)
async def test_a_call_shows_what_its_consumer_may_see(
    consumer: str, groups: str, hands: dict[str, list[str]], invitation: str
) -> None:
    paths = [
        f"/v1/stores/{rows}"
        for rows in ("games-by-key/rows?group=g1", "games-by-table/rows?group=t1", "games-by-table/rows")
    ]
    async with game_edge() as edge, caller(edge, consumer, groups) as client:
        answers = [await client.get(path) for path in paths]
        again = await client.get(paths[0], headers={"If-None-Match": answers[0].headers["ETag"]})
    rows = [answer.json()["rows"][0]["row"] for answer in answers]

    assert [cards(row) for row in rows] == [hands] * 3
    assert [row["invitation"] for row in rows] == [invitation] * 3
    assert {answer.headers["Cache-Control"] for answer in answers} == {"private, no-store"}
    assert again.status_code == 200, "a position stands for as many answers as there are views"


REQUESTS: dict[str, dict[str, Any]] = {
    "key": {"subscribe": {"store": "games-by-key", "key": {"group": "g1"}, "interval_ms": 0}},
    "range": {"watch_range": {"range": RANGE, "interval_ms": 0}},
    "query": {
        "watch_query": {
            "query": {"name": "q", "first": RANGE, "steps": [{"store": "games-by-key", "group_field": "game_id"}]},
            "interval_ms": 0,
        }
    },
}


@pytest.mark.parametrize("kind", REQUESTS)
async def test_a_socket_is_told_what_its_consumer_may_see(kind: str) -> None:
    async with (
        game_edge() as edge,
        edge.socket("/v1/stream", ALICE) as hers,
        edge.socket("/v1/stream", BOB) as his,
        edge.socket("/v1/stream", CAROL) as guests,
    ):
        sockets = hers, his, guests
        for socket in sockets:
            await ask(socket, id="1", **REQUESTS[kind])
        count = 2 if kind == "query" else 1
        snapshots = [[await row_of(socket) for _ in range(count)] for socket in sockets]
        for key in (KEY, StoreKey("games-by-table", "t1", "1", "g1")):
            edge.query.put(key, game(BOB, "queen"))
        changes = [[await row_of(socket) for _ in range(count)] for socket in sockets]

    for rows, ace in ((snapshots, "ace"), (changes, "queen")):
        assert [[cards(row) for row in each] for each in rows] == [
            [{ALICE: [ace]}] * count,
            [{BOB: ["king"]}] * count,
            [{}] * count,
        ]
        assert [{"invitation" in row for row in each} for each in rows] == [{False}, {True}, {False}]


async def test_a_channel_tells_what_its_consumer_may_see() -> None:
    async with game_edge() as edge, caller(edge, ALICE) as client:
        channel = (await client.post("/v1/channels")).json()["channel"]
        subscription = {"store": "games-by-key", "key": {"group": "g1"}, "interval_ms": 0}
        await client.post(f"/v1/channels/{channel}/subscriptions", json={"subscriptions": [subscription]})
        async with edge.socket(f"/v1/channels/{channel}/stream", ALICE) as socket:
            await ask(socket, id="1", begin={})
            row = await row_of(socket)

    assert cards(row) == {ALICE: ["ace"]}


async def test_a_frame_is_encoded_once_for_each_view() -> None:
    async with (
        game_edge() as edge,
        edge.socket("/v1/stream", ALICE) as hers,
        edge.socket("/v1/stream", CAROL) as one,
        edge.socket("/v1/stream", "customer-0004") as other,
    ):
        for socket in (hers, one, other):
            await ask(socket, id="1", **REQUESTS["key"])
            await row_of(socket)
        (state,) = (row for key, each in edge.parts.hub._watches.items() if key == KEY for row in each.rows())

    assert list(state.views) == [ALICE]
    assert [len(each.frames) for each in (state, *state.views.values())] == [1, 1]
    assert cards(json_format.MessageToDict(state.row, preserving_proto_field_name=True)) == {}


JSON_FIELDS = (PrivateField(("deal", "hands"), "player"), PrivateField(("note",), "host"))


@pytest.mark.parametrize(
    ("viewer", "seen"),
    [
        ("a", {"host": "a", "note": 1, "deal": {"hands": [{"player": "a"}]}}),
        ("b", {"host": "a", "deal": {"hands": [{"player": "b"}]}}),
        (NOBODY, {"host": "a", "deal": {"hands": []}}),
    ],
)
def test_private_fields_of_json_are_found_within_objects(viewer: str, seen: dict[str, Any]) -> None:
    hands = [{"player": "a"}, {"player": "b"}, {"player": ""}, "b"]
    row = PrivateRow(json_format.ParseDict({"host": "a", "note": 1, "deal": {"hands": hands}}, Value()), JSON_FIELDS)

    assert row.owners == {"a", "b"}
    assert seen_json(row, viewer) == seen


@pytest.mark.parametrize(
    ("document", "public", "missed"),
    [
        ({"Note": "x", "deal": {"hands": []}, "host": "a"}, None, "note"),
        ({"note": None, "deal": {"Hands": ["x"]}, "city": "Ghent"}, {"note": None, "city": "Ghent"}, "deal.hands"),
        ({"note": None, "deal": [{"hands": ["x"]}]}, {"note": None}, "deal.hands"),
        ({"note": None, "deal": json.dumps({"hands": ["x"]})}, {"note": None}, "deal.hands"),
        ({"note": None, "deal": None}, {"note": None, "deal": None}, ""),
        ({"note": None, "deal": {"hands": None}}, {"note": None, "deal": {"hands": None}}, ""),
        ({"note": ["x", {"Host": "a"}, [{"host": "a"}]], "deal": None}, {"note": [], "deal": None}, ""),
        ({"note": {"host": "a"}, "deal": {"hands": {"a": "x"}}}, {"deal": {}}, ""),
        ({"host": 7, "note": "x", "deal": None}, {"host": 7, "deal": None}, ""),
        ([{"note": "x"}], None, "deal.hands"),
        (None, None, ""),
    ],
)
def test_json_in_which_a_path_does_not_lead_is_for_staff_from_where_it_ends(
    document: Any, public: Any, missed: str
) -> None:
    row = PrivateRow(json_format.ParseDict(document, Value()), JSON_FIELDS)

    assert [seen_json(row, viewer) for viewer in (NOBODY, "customer-0009")] == [public, public]
    assert row.missed == missed
    assert json_format.MessageToDict(row.full) == document


SECRET = "secret"
NAMES = st.sampled_from(["hands", "Hands", "deal", "note", "player", "host", "cards"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["alice", "bob", "", SECRET]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)


def secret_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the document holds the secret."""
    if value == SECRET:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        yield from secret_places(each, (*path, name))


@given(document=VALUES, path=PATHS, owner=NAMES, viewer=st.sampled_from(["alice", "", "carol"]))
def test_nobody_sees_what_may_be_private_and_is_not_theirs(
    document: Any, path: tuple[str, ...], owner: str, viewer: str
) -> None:
    private = PrivateField(path, owner)
    seen = seen_json(PrivateRow(json_format.ParseDict(document, Value()), (private,)), viewer)
    value, reached = document, 0
    while reached < len(path) and isinstance(value, dict) and path[reached] in value:
        value, reached = value[path[reached]], reached + 1
    may_see_all = reached == len(path) and isinstance(document, dict) and viewer and document.get(owner) == viewer
    of_row = may_see_all and not isinstance(value, list)
    hidden: list[tuple[Any, ...]] = [] if of_row or value is None else [path[:reached]]
    if reached == len(path) and isinstance(value, list):
        own = [index for index, each in enumerate(value) if isinstance(each, dict) and each.get(owner) == viewer != ""]
        hidden = [(*path, index) for index in range(len(value)) if index not in own]
    public = [place for place in secret_places(document) if all(place[: len(each)] != each for each in hidden)]

    assert len(list(secret_places(seen))) == len(public)


@pytest.mark.parametrize("document", [[], "a", {}, {"deal": 1}, {"deal": {"hands": "x"}}, {"deal": {}}, {"host": 1}])
def test_json_of_another_shape_hides_what_it_has(document: Any) -> None:
    row = PrivateRow(json_format.ParseDict(document, Value()), JSON_FIELDS)

    assert row.owners == set()
    assert "x" not in json.dumps(seen_json(row, NOBODY))
