"""The form of a pipeline's file: its keys, which of them go together, and its JSON Schema."""

import json
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
import yaml

from statecast_domains import pipeline_file
from statecast_domains.directories import pipeline_files
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile, misplaced, read

DOMAINS = Path(__file__).parents[3] / "domains"
SOUND = """
name: orders-by-key
source: {topic: orders, message: statecast.orders.v1.OrderChange}
group_by: order_id
keep: latest
sink: {topic: orders-by-key}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pipeline.yaml"


def test_what_is_left_out_has_its_default(file: Path) -> None:
    file.write_text(SOUND)

    definition = read(file)

    assert (definition.trigger.mode, definition.trigger.checkpoint) == ("realtime", timedelta(seconds=60))
    assert (definition.source.format, definition.where, definition.dead_letters.limit) == ("protobuf", None, 1000)


def test_members_have_their_paths(file: Path) -> None:
    file.write_text(SOUND.replace("keep: latest", "keep: {members: {key: order_id, sort: updated_at}}"))

    members = read(file).keep.members

    assert members is not None
    assert (members.key, members.sort) == ("order_id", "updated_at")


def test_a_condition_over_lines_is_one_line(file: Path) -> None:
    file.write_text(SOUND + "where: >\n  currency = 'EUR'\n  and total_cents > 0\n")

    assert read(file).where == "currency = 'EUR' and total_cents > 0"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("group_by", "groupby", "groupby: unknown key; did you mean group_by?"),
        ("{topic: orders,", "{topc: orders,", "source.topc: unknown key; did you mean topic?"),
        ("topic: orders, ", "", "source.topic: is missing"),
        ("message:", "mesage: x, message:", "source.mesage: unknown key; did you mean message?"),
        ("keep: latest", "keep: latst", "keep: 'latst' is not supported; did you mean latest?"),
        (
            "keep: latest",
            "keep: {agregate: {n: count(*)}}",
            "keep: 'agregate' is not supported; did you mean aggregate",
        ),
        ("keep: latest", "keep: {members: {}, route: {}}", "keep: a pipeline keeps one of: latest, members"),
        ("keep: latest", "keep: members", "keep: members needs more: {members: {key"),
        ("keep: latest", "keep: aggregate", "keep: aggregate needs more: {aggregate: {FIELD"),
        ("keep: latest", "keep: {members: {key: a, sort: b, order: c}}", "keep.members.order: unknown key"),
        (
            "keep: latest",
            "keep: {route: {operations: [delete]}}",
            "keep.route.operations[0]: 'delete' is not supported",
        ),
        ("keep: latest", "keep: 7", "keep: 7 is not supported"),
        (
            "keep:",
            "joins: [{topik: a, message: b, key: c, as: d}]\nkeep:",
            "joins[0].topik: unknown key; did you mean topic",
        ),
        ("keep:", "joins: [{topic: a, message: b, key: c, a: d}]\nkeep:", "joins[0].a: unknown key; did you mean as?"),
        (
            "keep:",
            "window: {time: a, size: 0s}\nkeep:",
            "window.size: Input should be greater than 0 seconds (it is '0s')",
        ),
        (
            "OrderChange}",
            "OrderChange, format: protobuff}",
            "source.format: 'protobuff' is not supported; did you mean",
        ),
        ("group_by: order_id", "group_by: 7", "group_by: must be a path or a list of paths (it is 7)"),
        ("sink: {topic: orders-by-key}", "sink: {topic: 'a b'}", "sink.topic: 'a b' is no topic's name: it has"),
        ("sink: {topic: orders-by-key}", "sink: {topic: ..}", "sink.topic: '..' is no topic's name"),
        ("sink: {", "sink: {producer: {acks: 0}, ", "sink.producer.acks: cannot be chosen: records would be lost"),
        (
            "sink: {",
            "sink: {producer: {enable.idempotence: false}, ",
            "sink.producer.enable.idempotence: cannot be chos",
        ),
        (
            "sink: {",
            "sink: {producer: {retries: 3}, ",
            "sink.producer.retries: cannot be chosen: records would be lost",
        ),
        ("sink: {", "sink: {producer: {buffer-memory: 9}, ", "sink.producer.buffer-memory: unknown key; "),
        ("sink: {", "sink: {producer: {transactional.id: a}, ", "sink.producer.transactional.id: cannot be chosen: tr"),
        ("sink: {", "sink: {producer: {linger.ms: 5}, ", "sink.producer.linger.ms: unknown key; it is called linger"),
        ("sink: {", "sink: {producer: {linger: 1m}, ", "sink.producer.linger: Input should be less than or equal to"),
        (
            "sink: {",
            "sink: {producer: {compresion: gzip}, ",
            "sink.producer.compresion: unknown key; did you mean comp",
        ),
        ("OrderChange}", "OrderChange, starting_offsets: newest}", "source.starting_offsets: must be earliest, latest"),
        ("keep:", "store: {interval: 5000}\nkeep:", "store.interval: 5000 is not a duration like 500ms, 60s or 2m"),
        ("keep:", "store: {interval: 0s}\nkeep:", "store.interval: Input should be greater than"),
        ("keep:", "forget_deleted: 99999999999999d\nkeep:", "forget_deleted: is too long, 36500d at most"),
        ("name: orders-by-key", "name: ../up", "name: String should match pattern"),
        ("keep:", "trigger: {mode: realtme}\nkeep:", "trigger.mode: 'realtme' is not supported; did you mean real"),
        (
            "keep:",
            "trigger: {checkpoint: 1s}\nkeep:",
            "trigger.checkpoint: Input should be greater than or equal to 5 s",
        ),
        ("keep:", "trigger: {checkpoint: soon}\nkeep:", "trigger.checkpoint: 'soon' is not a duration like"),
        ("keep:", "trigger: {interval: 1s}\nkeep:", "trigger: interval has no meaning in mode realtime"),
        ("keep:", "state: {memory: 64MB}\nkeep:", "state.memory: '64MB' is not a size like 64KiB or 1MiB"),
        ("keep:", "state: {store: memory}\nkeep:", "state.store: unknown key; one of: memory"),
        ("keep:", "trigger: {max_records: 9}\nkeep:", "trigger: max_records has no meaning in mode realtime"),
        (
            "keep:",
            "trigger: {mode: micro-batch, max_records: 0}\nkeep:",
            "trigger.max_records: Input should be greater than or equal to 1",
        ),
        ("keep:", "window: {time: t, size: 1h, hop: 25m}\nkeep:", "window: hop must divide size"),
        (
            "keep:",
            "window: {time: t, size: 1d, hop: 1h, keep: 12h}\nkeep:",
            "window: keep is 12h, and a window lasts for 1d: keep it at least as long",
        ),
        (
            "keep:",
            "window: {time: t, size: 1h, lateness: 7d, keep: 6d}\nkeep:",
            "window: keep is 6d, and a window takes changes for 7d: keep it at least as long",
        ),
        ("keep:", "window: {size: 1h, keep: 90d}\nkeep:", "window.time: "),
        ("keep:", "dead_letters: {limit: -1}\nkeep:", "dead_letters.limit: Input should be greater than or equal to 0"),
    ],
)
def test_a_wrong_key_or_value_is_named(file: Path, old: str, new: str, problem: str) -> None:
    file.write_text(SOUND.replace(old, new, 1))

    with pytest.raises(PipelineFileError) as caught:
        read(file)

    assert f"{file}: {problem}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "is not YAML"),
        ("- a", "is not a pipeline"),
        ("", "is not a pipeline"),
        ("\x00", "is not YAML"),
        ("a: 1\na: 2", "the key 'a' is given twice"),
    ],
)
def test_something_else_than_keys_and_values_is_refused(file: Path, content: str, problem: str) -> None:
    file.write_text(content)

    with pytest.raises(PipelineFileError, match=problem):
        read(file)


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(PipelineFileError, match=r"pipeline\.yaml: cannot be read: No such file"):
        read(file)


POSITIONS = {"topic": "open-positions", "message": "statecast.portfolio.v1.OpenPositionChange"}
MESSAGE = "statecast.orders.v1.OrderChange"
STORE = {"topic": "stores-by-key", "message": "statecast.sales.v1.Store", "key": "store_id", "as": "store"}
STORES = {"topic": "stores-by-key", "message": "statecast.sales.v1.Store", "format": "table"}
EVENTS = {"topic": "pos-invoices", "message": "statecast.sales.v1.Invoice", "format": "events"}
BY_NUMBER = {"by": "invoice_number", "within": "1h"}
EVENT_PROBLEMS: list[tuple[str, dict[str, object], dict[str, object], str]] = [
    (
        "sales-by-store",
        {"values": "state-record"},
        {},
        "source.values: must be protobuf or json: state-rec",
    ),
    ("sales-by-store", {"key": "invoice_number"}, {}, "source.key: has no meaning for events, each of wh"),
    ("sales-by-store", {"epoch": 2}, {}, "source.epoch: has no meaning in format events"),
    ("sales-by-store", {"time": "created_at"}, {}, "source.time: has no meaning with keep: aggregate wi"),
    ("sales-by-store", {}, {"insert_only": True}, "insert_only: has no meaning for events, which never"),
    ("sales-by-store", {}, {"forget_deleted": "1d"}, "forget_deleted: has no meaning for events, which"),
    ("home-delivery", {}, {"keep": {"route": {"operations": ["create"]}}}, "keep.route.operations: has no"),
    ("home-delivery", {}, {"state": {"memory": "64MiB"}}, "state: has no meaning with keep: route without"),
    ("home-delivery", {"format": "table", "deduplicate": BY_NUMBER}, {}, "source.deduplicate: has no mean"),
    ("home-delivery", {"format": "table", "time": "created_at"}, {}, "source.time: has no meaning in form"),
]
"""Pipelines of events, by the name of the file, the source's keys and the keys that are replaced, and the problem."""


@pytest.mark.parametrize(
    ("name", "replaced", "problem"),
    [
        (
            "orders-by-customer",
            {"source": {"topic": "o", "message": MESSAGE, "epoch": 2}},
            "source.epoch: has no meaning",
        ),
        (
            "orders-by-key",
            {"source": {"topic": "o", "message": MESSAGE, "starting_offsets": "latest"}},
            "source.starting_offsets: leaves out of keep: latest all rows that changed last before: say source.partial",
        ),
        (
            "orders-by-key",
            {"source": {"topic": "o", "message": MESSAGE, "partial": True}},
            "source.partial: has no meaning with starting_offsets: earliest",
        ),
        (
            "home-delivery",
            {"source": {"topic": "o", "message": MESSAGE, "partial": True, "starting_offsets": "latest"}},
            "source.partial: has no meaning with keep: route without totals",
        ),
        (
            "orders-by-key",
            {"sink": {"topic": "t", "partition_by": "customer_id"}},
            "sink.partition_by: cannot be chosen for a keyed topic: readers find a key's partition by its group",
        ),
        (
            "loyalty-notifications",
            {"sink": {"topic": "t", "message": "m", "partition_by": "store_id"}},
            "sink.partition_by: has no meaning with keep.route.totals",
        ),
        ("orders-by-key", {"window": {"time": "placed_at", "size": "1h"}}, "window: has no meaning with keep: latest"),
        ("orders-by-key", {"explode": "items"}, "explode: has no meaning with keep: latest; it goes with: route"),
        ("orders-by-key", {"insert_only": True}, "insert_only: has no meaning with keep: latest"),
        ("home-delivery", {"state": {"memory": "64MiB"}}, "state: has no meaning with keep: route without totals"),
        ("home-delivery", {"forget_deleted": "1d"}, "forget_deleted: has no meaning with keep: route"),
        ("orders-by-key", {"select": {"order_id": "order_id"}}, "sink.message: is missing: select fills its fields"),
        ("invoices-with-store", {"select": None}, "select: is missing: without it nothing of the joined tables"),
        ("masked-lines", {"select": None}, "select: is missing: without it each element"),
        ("us-share-holders", {"source": POSITIONS}, "source.key: is missing: an aggregate needs"),
        ("loyalty-notifications", {"source": POSITIONS}, "source.key: is missing: a running total needs"),
        ("loyalty-notifications", {"trigger": {}}, "trigger.mode: must be micro-batch: in real-time mode a crash"),
        ("loyalty-notifications", {"explode": "lines"}, "explode: has no meaning with keep.route.totals"),
        ("loyalty-notifications", {"select": None}, "select: is missing: it and keep.route.totals fill"),
        (
            "rewards-by-customer",
            {"joins": [STORE]},
            "joins: are not exact with keep: aggregate, for after a crash a row",
        ),
        *(
            ("stores-with-sales", replaced, problem)
            for replaced, problem in [
                ({"source": {**STORES, "format": "protobuf"}}, "source.format: must be table with table_join"),
                ({"source": {**STORES, "key": "store_id"}}, "source.key: has no meaning with table_join"),
                ({"source": {**STORES, "starting_offsets": "latest"}}, "source.starting_offsets: must be earliest"),
                ({"source": {**STORES, "topic": "sales-by-store"}}, "table_join.topic: is sales-by-store, as source."),
                ({"trigger": {}}, "trigger.mode: must be micro-batch with table_join"),
                ({"joins": [STORE]}, "joins: cannot stand beside table_join"),
                ({"select": None}, "select: is missing: without it nothing of the joined table is written"),
                ({"sink": {"topic": "t"}}, "sink.message: is missing: select fills its fields"),
                ({"keep": {"members": {"key": "a", "sort": "b"}}}, "table_join: has no meaning with keep: members"),
                ({"keep": {"aggregate": {"invoices": "count(*)"}}}, "table_join: has no meaning with keep: aggregate"),
                ({"keep": "route"}, "table_join: has no meaning with keep: route; it goes with: latest"),
                ({"explode": "lines"}, "explode: has no meaning with keep: latest"),
            ]
        ),
        ("us-share-holders", {"sink": {"topic": "t"}}, "sink.message: is missing: an aggregate needs a message"),
        *(
            (name, {"source": {**EVENTS, **more}, **replaced}, problem)
            for name, more, replaced, problem in EVENT_PROBLEMS
        ),
    ],
)
def test_a_key_without_meaning_or_a_missing_one_is_named(name: str, replaced: dict[str, object], problem: str) -> None:
    content = yaml.safe_load(next(DOMAINS.rglob(f"{name}.yaml")).read_text())

    problems = misplaced(PipelineFile.model_validate({**content, **replaced}))

    assert any(f"{key}: {text}".startswith(problem) for key, text in problems)


@pytest.mark.parametrize(
    ("name", "more", "replaced"),
    [
        ("sales-by-store", {}, {}),
        ("sales-by-store", {"values": "json", "deduplicate": BY_NUMBER, "time": "created_at"}, {}),
        ("invoices-by-store", {"time": "created_at"}, {}),
        ("loyalty-notifications", {}, {"keep": {"route": {"totals": {"total_points": "count(*)"}}}}),
        ("home-delivery", {"deduplicate": BY_NUMBER}, {"state": {"memory": "64MiB"}}),
    ],
)
def test_each_shape_may_be_made_of_events(name: str, more: dict[str, object], replaced: dict[str, object]) -> None:
    content = yaml.safe_load(next(DOMAINS.rglob(f"{name}.yaml")).read_text())

    assert list(misplaced(PipelineFile.model_validate({**content, "source": {**EVENTS, **more}, **replaced}))) == []


SHIPPED = pipeline_files([DOMAINS])
SCHEMA = json.loads(pipeline_file.schema_text())


def test_the_shipped_schema_is_current() -> None:
    """If this fails, run `stream-processor schema > domains/pipeline.schema.json`."""
    assert (DOMAINS / "pipeline.schema.json").read_text() == pipeline_file.schema_text()


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_pipeline_fits_the_schema_that_it_names(file: Path) -> None:
    named = file.read_text().splitlines()[0].removeprefix("# yaml-language-server: $schema=")

    jsonschema.validate(yaml.safe_load(file.read_text()), SCHEMA)

    assert (file.parent / named).resolve() == (DOMAINS / "pipeline.schema.json").resolve()


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("keep", "newest"),
        ("keep", {"members": {"key": "a", "sort": "b"}, "route": {}}),
        ("joins", [{"topic": "a", "message": "b", "on": "c", "as": "d"}]),
        ("table_join", {"topic": "a", "message": "b", "as": "d", "type": "right"}),
        ("forget_deleted", "soon"),
        ("groupby", "order_id"),
    ],
)
def test_a_wrong_value_does_not_fit(key: str, wrong: object) -> None:
    content = yaml.safe_load((DOMAINS / "orders" / "orders-by-key.yaml").read_text())

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, key: wrong}, SCHEMA)
