"""Fields that only some see: the game of docs/examples/game, by calls, sockets, ranges, queries and channels."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from statecast.descriptors import MessageTypes
from statecast.json_documents import document_of
from testkit.repository_files import EXAMPLES
from testkit.ws_edge.channels import channel_of
from testkit.ws_edge.edge import RunningEdge
from testkit.ws_edge.stream import BINARY, StreamClient, stream_client
from ws_edge.model.private_fields import NOBODY, PrivateField, PrivateRow
from ws_edge.model.states import StoreKey

EXAMPLE = EXAMPLES / "game"
TYPES = MessageTypes.read(EXAMPLE / "messages")
GAME = TYPES.message_class("game.v1.Game")
ALICE, BOB, CAROL = "customer-0001", "customer-0002", "customer-0003"
KEY = StoreKey("games-by-key", "g1")
MEMBER = StoreKey("games-by-table", "t1", "1", "g1")
RANGE = {"store": "games-by-table", "group": "t1", "interval_ms": 0}
MEMBERS = """
  - {name: games-by-table, message: game.v1.Game, keeps: members, readers: everyone,
     private: [{path: hands, owner: player_id}, {path: invitation, owner: host_id}]}
"""


def game(turn: str = ALICE, hers: str = "ace", invitation: str = "secret") -> Message:
    hands = [{"player_id": ALICE, "cards": [hers]}, {"player_id": BOB, "cards": ["king"]}]
    document = {"game_id": "g1", "turn": turn, "hands": hands, "host_id": BOB, "invitation": invitation}
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
    async with RunningEdge(kafka=True, stores=stores, **settings) as edge:
        edge.query.put(KEY, game())
        edge.query.put(MEMBER, game())
        yield edge


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
    async with game_edge() as edge, edge.client(consumer, groups) as client:
        answers = [await client.get(path) for path in paths]
    rows = [answer.json()["rows"][0]["row"] for answer in answers]

    assert [cards(row) for row in rows] == [hands] * 3
    assert [row["invitation"] for row in rows] == [invitation] * 3
    assert {answer.headers["Cache-Control"] for answer in answers} == {"private, no-store"}
    assert not any("ETag" in answer.headers for answer in answers), "a position stands for as many answers as views"


WATCHES: dict[str, dict[str, Any]] = {
    "key": {"store": "games-by-key", "group": "g1", "interval_ms": 0},
    "range": RANGE,
    "query": {**RANGE, "steps": [{"store": "games-by-key", "group_field": "game_id"}]},
}
PLACES = {"key": [""], "range": [""], "query": ["", "g1"]}


async def begin(client: StreamClient, watch: dict[str, Any]) -> None:
    await client.begin({"id": 1, **watch})


def held(client: StreamClient, path: str = "") -> dict[str, Any]:
    """Returns the only row of a place."""
    (row,) = client.rows[1, path].values()
    return dict(row)


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("kind", WATCHES)
async def test_a_socket_is_told_what_its_consumer_may_see(kind: str, delta: bool) -> None:
    async with (
        game_edge() as edge,
        stream_client(edge, consumer=ALICE) as hers,
        stream_client(edge, consumer=BOB) as his,
        stream_client(edge, consumer=CAROL) as guests,
    ):
        clients = hers, his, guests
        for client in clients:
            await begin(client, {**WATCHES[kind], "delta": delta})
        rows = [[held(client, path) for path in PLACES[kind]] for client in clients]
        for key in (KEY, MEMBER):
            edge.query.put(key, game(BOB, "queen"))
        for client in clients:
            while any(held(client, path)["turn"] != BOB for path in PLACES[kind]):
                await client.next()
        changed = [[held(client, path) for path in PLACES[kind]] for client in clients]

    count = len(PLACES[kind])
    for each, ace in ((rows, "ace"), (changed, "queen")):
        assert [[cards(row) for row in places] for places in each] == [
            [{ALICE: [ace]}] * count,
            [{BOB: ["king"]}] * count,
            [{}] * count,
        ]
        assert [{row["invitation"] for row in places} for places in each] == [{""}, {"secret"}, {""}]


def names_in(client: StreamClient) -> set[str]:
    """Returns the fields of all deltas that have come, by name."""
    rows = [row for frame in client.frames for row in frame.get("rows", [])]
    assert all("row" not in row for row in rows[1:]), "all but the first come as deltas"
    return {name for row in rows for name in (*row.get("delta", {}), *row.get("changed", []))}


@pytest.mark.parametrize("subprotocol", [None, BINARY])
async def test_a_delta_names_no_field_that_its_consumer_may_not_see(subprotocol: str | None) -> None:
    options = {"subprotocols": subprotocol and [subprotocol]}
    async with (
        game_edge() as edge,
        stream_client(edge, consumer=ALICE, **options) as hers,
        stream_client(edge, consumer=BOB, **options) as his,
        stream_client(edge, consumer=CAROL, **options) as guests,
    ):
        for client in (hers, his, guests):
            await begin(client, {**RANGE, "delta": True})
        edge.query.put(MEMBER, game(ALICE, "queen", "another secret"))  # for Carol, nothing has changed
        edge.query.put(MEMBER, game(BOB, "queen", "another secret"))
        for client in (hers, his, guests):
            while "turn" not in names_in(client):
                await client.next()

    assert names_in(hers) == {"hands", "turn"}
    assert names_in(his) == {"invitation", "turn"}
    assert names_in(guests) == {"turn"}
    assert "secret" not in str(guests.frames)


async def test_a_delta_tells_an_owner_of_old_that_a_field_is_gone() -> None:
    async with game_edge() as edge, stream_client(edge, consumer=BOB) as client:
        await begin(client, {**RANGE, "delta": True})
        handed_over = game()
        handed_over.host_id = ALICE  # type: ignore[attr-defined]
        edge.query.put(MEMBER, handed_over)
        while held(client)["host_id"] == BOB:
            await client.next()

        assert held(client)["invitation"] == ""


async def test_a_channel_tells_what_its_consumer_may_see() -> None:
    async with game_edge() as edge, edge.client(ALICE) as calls, stream_client(edge, consumer=ALICE) as client:
        channel = await channel_of(calls, game=WATCHES["key"])
        await begin(client, {"channel": channel})

        assert cards(held(client, "game")) == {ALICE: ["ace"]}


async def test_a_row_is_encoded_once_for_each_view() -> None:
    async with (
        game_edge() as edge,
        stream_client(edge, consumer=ALICE) as hers,
        stream_client(edge, consumer=CAROL) as one,
        stream_client(edge, consumer="customer-0004") as other,
    ):
        for client in (hers, one, other):
            await begin(client, WATCHES["key"])
        (watch,) = (each for question, each in edge.parts.hub._watches.items() if question.group == KEY.group)
        (state,) = watch.window.rows.values()

    assert list(state.views) == [ALICE]
    assert [len(each.bodies) for each in (state, *state.views.values())] == [1, 1]
    assert cards(json_format.MessageToDict(state.row, preserving_proto_field_name=True)) == {}


JSON_FIELDS = (PrivateField(("deal", "hands"), "player"), PrivateField(("note",), "host"))


@pytest.mark.parametrize(
    ("viewer", "seen"),
    [
        ("a", {"host": "a", "note": 1, "deal": {"hands": [{"player": "a"}]}}),
        ("b", {"host": "a", "deal": {"hands": [{"player": "b"}]}}),
        ("7", {"host": "a", "deal": {"hands": [{"player": 7}]}}),
        (NOBODY, {"host": "a", "deal": {"hands": []}}),
    ],
)
def test_private_fields_of_json_are_found_within_objects(viewer: str, seen: dict[str, Any]) -> None:
    hands = [{"player": "a"}, {"player": "b"}, {"player": ""}, {"player": 7}, {"player": 7.5}, "b"]
    row = PrivateRow(json_format.ParseDict({"host": "a", "note": 1, "deal": {"hands": hands}}, Value()), JSON_FIELDS)

    assert row.owners == {"a", "b", "7"}
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
    """Yields where the document holds the secret."""
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


@pytest.mark.parametrize("document", [[], "a", {}, {"deal": 1}, {"deal": {"hands": "x"}}, {"deal": {}}, {"host": True}])
def test_json_of_another_shape_hides_what_it_has(document: Any) -> None:
    row = PrivateRow(json_format.ParseDict(document, Value()), JSON_FIELDS)

    assert row.owners == set()
    assert "x" not in json.dumps(seen_json(row, NOBODY))
