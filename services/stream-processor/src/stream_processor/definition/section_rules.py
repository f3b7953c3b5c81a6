"""Which keys of a pipeline's file have a meaning together, whatever the contract says."""

from collections.abc import Iterator

from stream_processor.definition.pipeline_file import PipelineFile

Wrong = tuple[str, str]


def first_misplaced(definition: PipelineFile) -> Wrong | None:
    """The first key that has no meaning beside the others, or is missing beside them: (key, problem)."""
    return next(_misplaced(definition), None)


def _misplaced(definition: PipelineFile) -> Iterator[Wrong]:
    yield from _source(definition)
    yield from _foreign(definition)
    yield from _sink(definition)


def _source(definition: PipelineFile) -> Iterator[Wrong]:
    source, shape = definition.source, definition.keep.shape
    if source.epoch is not None and source.format != "debezium-json":
        yield "source.epoch", f"has no meaning in format {source.format}, whose changes carry their epoch"
    if shape == "route" and source.key is not None:
        yield "source.key", "has no meaning with keep: route, which remembers no rows"
    if shape == "aggregate" and source.key is None:
        yield "source.key", "is missing: an aggregate needs the row's primary key, to count each row once"


def _foreign(definition: PipelineFile) -> Iterator[Wrong]:
    """What is written although the shape has no use for it."""
    shape, written = definition.keep.shape, definition.model_fields_set
    meaning = {
        "window": ("aggregate",),
        "insert_only": ("aggregate",),
        "explode": ("route",),
        "joins": ("latest", "members", "route"),
        "select": ("latest", "members", "route"),
        "forget_deleted": ("latest", "members", "aggregate"),
    }
    for key, shapes in meaning.items():
        if key in written and shape not in shapes:
            yield key, f"has no meaning with keep: {shape}; it goes with: {', '.join(shapes)}"


def _sink(definition: PipelineFile) -> Iterator[Wrong]:
    message, select = definition.sink.message, definition.select
    if definition.keep.shape == "aggregate" and message is None:
        yield "sink.message", "is missing: an aggregate needs a message whose fields it fills"
    if select is not None and message is None:
        yield "sink.message", "is missing: select fills its fields"
    if definition.joins and select is None:
        yield "select", "is missing: without it nothing of the joined tables is written"
    if definition.explode is not None and select is None:
        yield "select", "is missing: without it each element would give the same record"
