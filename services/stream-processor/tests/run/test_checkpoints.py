"""A checkpoint is used only by a pipeline of the same meaning."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from statecast.descriptors import MessageTypes
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.errors import NoteDamagedError, PipelineChangedError
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run import checkpoints as module
from stream_processor.run.checkpoints import STATE_VERSION, Checkpoints, LocalFiles
from stream_processor.run.plan import QueryPlan, TopicState, plan, topics_of
from testkit.stream_processor import sales
from testkit.stream_processor.changes import POSITION_CHANGES

IDS = {"orders": "A", "orders-by-key": "B"}
WITH_MESSAGE = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order"}


HOLDERS = {"open-positions": "A", "us-share-holders": "B"}


def no_epochs(_topic: str, _last_only: bool) -> int:
    """As of an empty topic."""
    return 0


def claim(
    checkpoints: Checkpoints, query: QueryPlan, ids: Mapping[str, str], highest_epoch: Callable[[str, bool], int]
) -> int:
    """Claims the checkpoint of a query on topics with these ids."""
    return module.claim(checkpoints, query.at({name: TopicState(each, 4) for name, each in ids.items()}), highest_epoch)


def planned(pipeline: Pipeline, sink_partitions: int = 4) -> QueryPlan:
    return plan([pipeline], {"orders": 4, "orders-by-key": sink_partitions, "orders.dead-letter": 1})[0]


@pytest.fixture
def holders(shipped: Callable[..., Pipeline]) -> QueryPlan:
    """The query of an aggregate."""
    partitions = {"open-positions": 4, "us-share-holders": 4, "open-positions.dead-letter": 1}
    return plan([shipped("us-share-holders", source=POSITION_CHANGES)], partitions)[0]


@pytest.fixture
def claimed(tmp_path: Path, shipped: Callable[..., Pipeline]) -> Path:
    """A directory in which orders-by-key has a checkpoint."""
    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(shipped("orders-by-key")), IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "replaced",
    [
        {},
        {"trigger": {"checkpoint": "9s"}},
        {"dead_letters": {"limit": 1}},
        {"forget_deleted": "1h"},
        {"store": {"readers": "everyone"}},
        {"state": {"memory": "64MiB"}},
        {"sink": {"topic": "orders-by-key", "producer": {"compression": "zstd", "linger": "50ms"}}},
    ],
)
def test_the_same_meaning_goes_on(claimed: Path, shipped: Callable[..., Pipeline], replaced: dict[str, object]) -> None:
    claim(Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key", **replaced)), IDS, no_epochs)


def sales_by_price(directory: Path, digits: str) -> Pipeline:
    """Members sorted by a price; the option of its field has these digits, or there is none."""
    option = f" [(statecast.change.v1.decimal) = {{{digits}}}]" if digits else ""
    directory.mkdir()
    text = sales.PROTO.replace(
        "string tax = 7 [(statecast.change.v1.decimal) = {precision: 8, scale: 7}]", "string tax = 7"
    )
    (directory / "sales.proto").write_text(text.replace("string tax = 7", f"string tax = 7{option}"))
    content = {
        "name": "orders-by-key",
        "source": {"topic": "orders", "message": sales.CHANGE},
        "group_by": "shop",
        "keep": {"members": {"key": "sale_id", "sort": "tax"}},
        "sink": {"topic": "orders-by-key"},
    }
    contract = Contract(MessageTypes.read(directory).descriptor_set)
    return shapes.check("orders-by-key.yaml", PipelineFile.model_validate(content), contract)


@pytest.mark.parametrize("digits", ["", "precision: 9, scale: 2", "precision: 8, scale: 3"])
def test_decimals_that_keys_write_in_another_way_are_refused(tmp_path: Path, digits: str) -> None:
    made_with = sales_by_price(tmp_path / "before", "precision: 8, scale: 2")
    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(made_with), IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()
    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(made_with), IDS, no_epochs)

    with pytest.raises(
        PipelineChangedError, match=r"orders-by-key\.yaml: decimals in keys: changed since the checkpoint"
    ):
        claim(Checkpoints(str(tmp_path), LocalFiles()), planned(sales_by_price(tmp_path / "n", digits)), IDS, no_epochs)


def pieces_by_shop(directory: Path, declared: str) -> Pipeline:
    """Returns a sum into a field with this declaration."""
    directory.mkdir()
    (directory / "sales.proto").write_text(sales.PROTO.replace("optional int64 pieces", f"{declared} pieces"))
    content = {
        "name": "orders-by-key",
        "source": {"topic": "orders", "message": sales.CHANGE, "key": "sale_id"},
        "group_by": "shop",
        "keep": {"aggregate": {"pieces": "sum(amount)"}},
        "sink": {"topic": "orders-by-key", "message": sales.TURNOVER},
    }
    contract = Contract(MessageTypes.read(directory).descriptor_set)
    return shapes.check("orders-by-key.yaml", PipelineFile.model_validate(content), contract)


def test_a_state_that_has_not_counted_the_values_of_a_sum_is_refused(tmp_path: Path) -> None:
    always_set = pieces_by_shop(tmp_path / "before", "int64")
    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(always_set), IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()

    may_be_unset = pieces_by_shop(tmp_path / "after", "optional int64")
    with pytest.raises(
        PipelineChangedError, match=r"orders-by-key\.yaml: sums that may be null: changed since the checkpoint"
    ):
        claim(Checkpoints(str(tmp_path), LocalFiles()), planned(may_be_unset), IDS, no_epochs)


def test_the_epoch_of_a_restored_database_goes_on(tmp_path: Path, shipped: Callable[..., Pipeline]) -> None:
    message = "statecast.orders.v1.OrderChange"
    before, after = (
        shipped(
            "orders-by-key", source={"topic": "orders", "message": message, "format": "debezium-json", "epoch": epoch}
        )
        for epoch in (1, 2)
    )
    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(before), IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()

    claim(Checkpoints(str(tmp_path), LocalFiles()), planned(after), IDS, no_epochs)


@pytest.mark.parametrize(
    ("replaced", "key"),
    [
        ({"group_by": "customer_id"}, "group_by"),
        ({"where": "total_cents > 0"}, "where"),
        ({"keep": {"members": {"key": "order_id", "sort": "placed_at"}}}, "keep"),
        ({"select": {"order_id": "order_id"}, "sink": WITH_MESSAGE}, "select, sink.message"),
    ],
)
def test_another_meaning_is_refused(
    claimed: Path, shipped: Callable[..., Pipeline], replaced: dict[str, object], key: str
) -> None:
    with pytest.raises(PipelineChangedError, match=f"orders-by-key.yaml: {key}: changed since the checkpoint"):
        claim(Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key", **replaced)), IDS, no_epochs)


def test_a_sink_with_other_partitions_is_refused(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    with pytest.raises(PipelineChangedError, match=r"sink\.partitions: changed"):
        claim(
            Checkpoints(str(claimed), LocalFiles()),
            planned(shipped("orders-by-key"), sink_partitions=8),
            IDS,
            no_epochs,
        )


def test_a_state_in_other_parts_is_refused(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    with pytest.raises(PipelineChangedError, match=r"orders-by-key\.yaml: parallelism: changed since the checkpoint"):
        claim(Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key", parallelism=4)), IDS, no_epochs)


def test_a_pipeline_without_state_may_be_given_more_tasks(tmp_path: Path, shipped: Callable[..., Pipeline]) -> None:
    for parallelism in (2, 4):
        route = shipped("home-delivery", parallelism=parallelism)
        topics = topics_of([route])
        [planned] = plan([route], dict.fromkeys(topics, 4))
        claim(Checkpoints(str(tmp_path), LocalFiles()), planned, dict.fromkeys(topics, "A"), no_epochs)
        (tmp_path / "home-delivery").mkdir(exist_ok=True)


def test_without_the_checkpoint_any_meaning_begins_anew(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    (claimed / "orders-by-key").rmdir()

    claim(
        Checkpoints(str(claimed), LocalFiles()),
        planned(shipped("orders-by-key", group_by="customer_id")),
        IDS,
        no_epochs,
    )


@pytest.mark.parametrize(("topic", "key"), [("orders", r"source\.topic\.id"), ("orders-by-key", r"sink\.topic\.id")])
def test_a_topic_that_was_made_anew_is_refused(
    claimed: Path, shipped: Callable[..., Pipeline], topic: str, key: str
) -> None:
    with pytest.raises(PipelineChangedError, match=f"{key}: changed"):
        claim(
            Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key")), {**IDS, topic: "C"}, no_epochs
        )


def test_a_joined_table_that_was_made_anew_or_is_joined_otherwise_is_refused(
    tmp_path: Path, shipped: Callable[..., Pipeline]
) -> None:
    join = shipped("stores-with-sales")
    ids = dict.fromkeys(topics_of([join]), "A")
    [query, *_] = plan([join], dict.fromkeys(ids, 4))
    checkpoints = Checkpoints(str(tmp_path), LocalFiles())
    claim(checkpoints, query, ids, no_epochs)
    (tmp_path / "stores-with-sales").mkdir()
    claim(checkpoints, query, ids, no_epochs)

    with pytest.raises(PipelineChangedError, match=r"stores-with-sales\.yaml: table_join\.topic\.id: changed since"):
        claim(checkpoints, query, {**ids, "sales-by-store": "B"}, no_epochs)
    sales = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales", "as": "sales", "type": "outer"}
    [outer, *_] = plan([shipped("stores-with-sales", table_join=sales)], dict.fromkeys(ids, 4))
    with pytest.raises(PipelineChangedError, match=r"stores-with-sales\.yaml: table_join: changed since"):
        claim(checkpoints, outer, ids, no_epochs)


def test_a_checkpoint_keeps_its_epoch_and_the_next_one_has_a_higher(
    tmp_path: Path, shipped: Callable[..., Pipeline]
) -> None:
    checkpoints, query_plan = Checkpoints(str(tmp_path), LocalFiles()), planned(shipped("orders-by-key"))

    first = claim(checkpoints, query_plan, IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()
    again = claim(checkpoints, query_plan, IDS, no_epochs)
    (tmp_path / "orders-by-key").rmdir()
    second = claim(checkpoints, query_plan, IDS, no_epochs)

    assert (first, again, second) == (1, 1, 2)


def test_sums_begin_above_all_epochs_of_their_topic(tmp_path: Path, holders: QueryPlan) -> None:
    assert claim(Checkpoints(str(tmp_path), LocalFiles()), holders, HOLDERS, lambda *_: 2_000) == 2_001


def test_a_checkpoint_from_before_the_sums_of_a_later_one_is_refused(tmp_path: Path, holders: QueryPlan) -> None:
    checkpoints = Checkpoints(str(tmp_path), LocalFiles())
    claim(checkpoints, holders, HOLDERS, no_epochs)
    (tmp_path / "us-share-holders").mkdir()

    assert claim(checkpoints, holders, HOLDERS, lambda *_: 1) == 1
    with pytest.raises(PipelineChangedError, match=r"sums of a later checkpoint \(epoch 2\) than .*: delete"):
        claim(checkpoints, holders, HOLDERS, lambda *_: 2)


ROWS = {"topic": "orders", "message": "statecast.orders.v1.Order", "format": "table"}


@pytest.mark.parametrize("values", ["json", "protobuf", "state-record"])
def test_more_partitions_are_refused_where_the_offset_is_the_order(
    tmp_path: Path, shipped: Callable[..., Pipeline], values: str
) -> None:
    pipeline, checkpoints = (
        shipped("orders-by-key", source={**ROWS, "values": values}),
        Checkpoints(str(tmp_path), LocalFiles()),
    )
    partitions = {"orders": 1, "orders-by-key": 4, "orders.dead-letter": 1}
    claim(checkpoints, plan([pipeline], partitions)[0], IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()
    grown = plan([pipeline], {**partitions, "orders": 4})[0]

    if values == "state-record":
        claim(checkpoints, grown, IDS, no_epochs)
        return
    with pytest.raises(PipelineChangedError, match=r"orders has 4 partitions and had 1: .* to a new topic"):
        claim(checkpoints, grown, IDS, no_epochs)


def test_a_checkpoint_of_an_older_release_takes_the_partitions_that_there_are(
    tmp_path: Path, shipped: Callable[..., Pipeline]
) -> None:
    checkpoints, query = (
        Checkpoints(str(tmp_path), LocalFiles()),
        planned(shipped("orders-by-key", source={**ROWS, "values": "json"})),
    )
    claim(checkpoints, query, IDS, no_epochs)
    (tmp_path / "orders-by-key").mkdir()
    note = checkpoints.read("orders-by-key.json") or {}
    checkpoints.replace("orders-by-key.json", {key: value for key, value in note.items() if key != module.PARTITIONS})

    claim(checkpoints, query, IDS, no_epochs)
    assert checkpoints.read("orders-by-key.json") == note


def test_a_state_of_another_form_is_refused(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    note = claimed / "orders-by-key.json"
    note.write_text(note.read_text().replace(f'"state": {STATE_VERSION}', f'"state": {STATE_VERSION - 1}'))

    with pytest.raises(PipelineChangedError, match=r"the form of the state: changed .* new name and sink"):
        claim(Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key")), IDS, no_epochs)


@pytest.mark.parametrize("content", ["{", "\xff", "[]", "null", ""])
def test_a_damaged_note_is_named_with_the_remedy(shipped: Callable[..., Pipeline], claimed: Path, content: str) -> None:
    (claimed / "orders-by-key.json").write_bytes(content.encode("latin-1"))

    with pytest.raises(NoteDamagedError, match=r"/orders-by-key\.json is no.* put it back from a backup, or make a"):
        claim(Checkpoints(str(claimed), LocalFiles()), planned(shipped("orders-by-key")), IDS, no_epochs)
