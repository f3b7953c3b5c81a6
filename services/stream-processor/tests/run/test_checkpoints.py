"""A checkpoint is used only by a pipeline of the same meaning."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from statecast.descriptors import MessageTypes
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.errors import NoteDamagedError, PipelineChangedError
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.checkpoints import Checkpoints, LocalFiles, claim
from stream_processor.run.plan import QueryPlan, TopicState, plan, topics_of
from testkit.stream_processor import sales
from testkit.stream_processor.changes import POSITION_CHANGES
from testkit.stream_processor.micro_batches import PipelineOf

BY_KEY = "orders-by-key"
RELEASED_NOTES = Path(__file__).with_name("released_notes")
WITH_MESSAGE = {"topic": BY_KEY, "message": "statecast.orders.v1.Order"}


class Place:
    """A directory of checkpoints, which pipelines claim on topics of four partitions."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.checkpoints = Checkpoints(str(directory), LocalFiles())

    def claim(
        self, pipeline: Pipeline, *, ids: Mapping[str, str] | None = None, epoch: int = 0, **partitions: int
    ) -> int:
        """Claims the checkpoint and returns its epoch; see `claimed`."""
        return self.claimed(pipeline, ids=ids, epoch=epoch, **partitions).epoch

    def claimed(
        self, pipeline: Pipeline, *, ids: Mapping[str, str] | None = None, epoch: int = 0, **partitions: int
    ) -> QueryPlan:
        """Claims the checkpoint and returns its plan.

        Topics have the id A, or as `ids` say, and so many partitions; `epoch` is the highest on the sink.
        """
        topics = topics_of([pipeline])
        counts = {**dict.fromkeys(topics, 4), **{name.replace("_", "-"): each for name, each in partitions.items()}}
        states = {name: TopicState((ids or {}).get(name, "A"), 4) for name in topics}
        [planned] = plan([pipeline], counts)
        return claim(self.checkpoints, planned.at(states), lambda *_: epoch)

    def make(self, pipeline: Pipeline) -> None:
        """Claims the checkpoint, and makes it as Spark would."""
        self.claim(pipeline)
        (self.directory / pipeline.name).mkdir()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def claimed(place: Place, shipped: PipelineOf) -> Place:
    """A place in which orders-by-key has a checkpoint."""
    place.make(shipped(BY_KEY))
    return place


@pytest.mark.parametrize(
    "replaced",
    [
        {},
        {"trigger": {"checkpoint": "9s"}},
        {"dead_letters": {"limit": 1}},
        {"forget_deleted": "1h"},
        {"store": {"readers": "everyone"}},
        {"state": {"memory": "64MiB"}},
        {"sink": {"topic": BY_KEY, "producer": {"compression": "zstd", "linger": "50ms"}}},
    ],
)
def test_the_same_meaning_goes_on(claimed: Place, shipped: PipelineOf, replaced: dict[str, object]) -> None:
    claimed.claim(shipped(BY_KEY, **replaced))


@pytest.mark.parametrize(
    ("replaced", "key"),
    [
        ({"group_by": "customer_id"}, "group_by"),
        ({"where": "total_cents > 0"}, "where"),
        ({"keep": {"members": {"key": "order_id", "sort": "placed_at"}}}, "keep"),
        ({"select": {"order_id": "order_id"}, "sink": WITH_MESSAGE}, "select, sink.message"),
        ({"parallelism": 4}, "parallelism"),
    ],
)
def test_another_meaning_is_refused(claimed: Place, shipped: PipelineOf, replaced: dict[str, object], key: str) -> None:
    with pytest.raises(PipelineChangedError, match=f"orders-by-key.yaml: {key}: changed since the checkpoint"):
        claimed.claim(shipped(BY_KEY, **replaced))


def of_sales(directory: Path, keep: dict[str, object], message: str, before: str, after: str) -> Pipeline:
    """Returns a pipeline of the sales by shop, with a declaration in their messages replaced."""
    directory.mkdir()
    (directory / "sales.proto").write_text(sales.PROTO.replace(before, after))
    content = {
        "name": BY_KEY,
        "source": {"topic": "orders", "message": sales.CHANGE, "key": "sale_id"},
        "group_by": "shop",
        "keep": keep,
        "sink": {"topic": BY_KEY, "message": message},
    }
    contract = Contract(MessageTypes.read(directory).descriptor_set)
    return shapes.check(f"{BY_KEY}.yaml", PipelineFile.model_validate(content), contract)


def by_tax(directory: Path, digits: str) -> Pipeline:
    """Members sorted by a text; the option of its field has these digits, or there is none."""
    option = f" [(statecast.change.v1.decimal) = {{{digits}}}]" if digits else ""
    keep: dict[str, object] = {"members": {"key": "sale_id", "sort": "tax"}}
    declared = "string tax = 7 [(statecast.change.v1.decimal) = {precision: 8, scale: 7}]"
    return of_sales(directory, keep, sales.ROW, declared, f"string tax = 7{option}")


@pytest.mark.parametrize("digits", ["", "precision: 9, scale: 2", "precision: 8, scale: 3"])
def test_decimals_that_keys_write_in_another_way_are_refused(place: Place, tmp_path: Path, digits: str) -> None:
    made_with = by_tax(tmp_path / "before", "precision: 8, scale: 2")
    place.make(made_with)
    place.claim(made_with)

    with pytest.raises(PipelineChangedError, match=r"orders-by-key\.yaml: decimals in keys: changed since the checkp"):
        place.claim(by_tax(tmp_path / "n", digits))


def test_a_state_that_has_not_counted_the_values_of_a_sum_is_refused(place: Place, tmp_path: Path) -> None:
    keep: dict[str, object] = {"aggregate": {"pieces": "sum(amount)"}}
    always_set, may_be_unset = (
        of_sales(tmp_path / name, keep, sales.TURNOVER, "optional int64 pieces", f"{declared} pieces")
        for name, declared in (("before", "int64"), ("after", "optional int64"))
    )
    place.make(always_set)

    with pytest.raises(PipelineChangedError, match=r"orders-by-key\.yaml: sums that may be null: changed since the"):
        place.claim(may_be_unset)


def test_the_epoch_of_a_restored_database_goes_on(place: Place, shipped: PipelineOf) -> None:
    source = {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "format": "debezium-json"}

    place.make(shipped(BY_KEY, source={**source, "epoch": 1}))
    place.claim(shipped(BY_KEY, source={**source, "epoch": 2}))


def test_a_sink_with_other_partitions_is_refused(claimed: Place, shipped: PipelineOf) -> None:
    with pytest.raises(PipelineChangedError, match=r"sink\.partitions: changed"):
        claimed.claim(shipped(BY_KEY), orders_by_key=8)


def test_a_pipeline_without_state_may_be_given_more_tasks(place: Place, shipped: PipelineOf) -> None:
    place.make(shipped("home-delivery", parallelism=2))
    place.claim(shipped("home-delivery", parallelism=4))


def test_a_state_keeps_its_parts_where_the_file_does_not_say_how_many(place: Place, shipped: PipelineOf) -> None:
    by_item = shipped("orders-by-item")
    place.make(shipped("orders-by-item", parallelism=2))

    assert place.claimed(by_item).parallelism == 2
    (place.directory / "orders-by-item").rmdir()
    assert place.claimed(by_item).parallelism == 1


def test_without_the_checkpoint_any_meaning_begins_anew(claimed: Place, shipped: PipelineOf) -> None:
    (claimed.directory / BY_KEY).rmdir()

    claimed.claim(shipped(BY_KEY, group_by="customer_id"))


@pytest.mark.parametrize(("topic", "key"), [("orders", r"source\.topic\.id"), (BY_KEY, r"sink\.topic\.id")])
def test_a_topic_that_was_made_anew_is_refused(claimed: Place, shipped: PipelineOf, topic: str, key: str) -> None:
    with pytest.raises(PipelineChangedError, match=f"{key}: changed"):
        claimed.claim(shipped(BY_KEY), ids={topic: "C"})


def test_a_joined_table_that_was_made_anew_or_is_joined_otherwise_is_refused(place: Place, shipped: PipelineOf) -> None:
    join = shipped("stores-with-sales")
    sides = {"topic": "sales-by-store", "message": "statecast.sales.v1.StoreSales", "as": "sales", "type": "outer"}
    place.make(join)
    place.claim(join)

    with pytest.raises(PipelineChangedError, match=r"stores-with-sales\.yaml: table_join\.topic\.id: changed since"):
        place.claim(join, ids={"sales-by-store": "B"})
    with pytest.raises(PipelineChangedError, match=r"stores-with-sales\.yaml: table_join: changed since"):
        place.claim(shipped("stores-with-sales", table_join=sides))


def test_a_checkpoint_keeps_its_epoch_and_the_next_one_has_a_higher(claimed: Place, shipped: PipelineOf) -> None:
    again = claimed.claim(shipped(BY_KEY))
    (claimed.directory / BY_KEY).rmdir()

    assert (again, claimed.claim(shipped(BY_KEY))) == (1, 2)


def test_sums_begin_above_all_epochs_of_their_topic_and_end_with_those_of_a_later_checkpoint(
    place: Place, shipped: PipelineOf
) -> None:
    holders = shipped("us-share-holders", source=POSITION_CHANGES)

    assert place.claim(holders, epoch=2_000) == 2_001
    place.make(holders)
    assert place.claim(holders, epoch=2_002) == 2_002
    with pytest.raises(PipelineChangedError, match=r"sums of a later checkpoint \(epoch 2003\) than .*: delete"):
        place.claim(holders, epoch=2_003)


@pytest.mark.parametrize("values", ["json", "protobuf", "state-record"])
def test_more_partitions_are_refused_where_the_offset_is_the_order(
    place: Place, shipped: PipelineOf, values: str
) -> None:
    rows = {"topic": "orders", "message": "statecast.orders.v1.Order", "format": "table", "values": values}
    pipeline = shipped(BY_KEY, source=rows)
    place.make(pipeline)

    if values == "state-record":
        place.claim(pipeline, orders=8)
        return
    with pytest.raises(PipelineChangedError, match=r"orders has 8 partitions and had 4: .* to a new topic"):
        place.claim(pipeline, orders=8)


@pytest.mark.parametrize("name", [file.stem for file in sorted(RELEASED_NOTES.iterdir())])
def test_a_checkpoint_of_the_last_release_goes_on(place: Place, shipped: PipelineOf, name: str) -> None:
    """If this fails, each checkpoint of 0.3.0 is refused at the upgrade (docs/compatibility.md)."""
    shutil.copy(RELEASED_NOTES / f"{name}.json", place.directory)
    (place.directory / name).mkdir()

    assert place.claim(shipped(name)) == 1


def test_a_state_of_another_form_is_refused(claimed: Place, shipped: PipelineOf) -> None:
    note = claimed.directory / f"{BY_KEY}.json"
    note.write_text(note.read_text().replace('"state": 5', '"state": 6'))

    with pytest.raises(PipelineChangedError, match=r"the form of the state: changed .* new name and sink"):
        claimed.claim(shipped(BY_KEY))


@pytest.mark.parametrize("content", ["{", "\xff", "[]", "null", ""])
def test_a_damaged_note_is_named_with_the_remedy(claimed: Place, shipped: PipelineOf, content: str) -> None:
    (claimed.directory / f"{BY_KEY}.json").write_bytes(content.encode("latin-1"))

    with pytest.raises(NoteDamagedError, match=r"/orders-by-key\.json is no.* put it back from a backup, or make a"):
        claimed.claim(shipped(BY_KEY))
