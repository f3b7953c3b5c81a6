"""Describes what a pipeline does, step by step, in lines for people."""

from collections.abc import Iterator

from stream_processor.definition.pipeline import (
    WINDOW_FIELDS,
    AggregatePipeline,
    MembersPipeline,
    Pipeline,
    RoutePipeline,
    RowPipeline,
    dead_letter_topic,
)
from stream_processor.definition.sections import human


def lines(pipeline: Pipeline) -> list[str]:
    """A headline, and a line per step: what is read, what becomes of a row, what is remembered, what is written."""
    return [
        f"{pipeline.name}: {pipeline.definition.keep.shape}, from {pipeline.file}",
        *(f"  {name:<12}{text}" for name, text in _steps(pipeline)),
    ]


def _steps(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    definition, source, trigger = pipeline.definition, pipeline.definition.source, pipeline.definition.trigger
    yield "read", f"{source.topic}: {source.message} as {source.format}"
    if definition.where is not None:
        yield "where", definition.where
    if isinstance(pipeline, RowPipeline):
        for join in pipeline.joins:
            yield "join", f"{join.topic} as {join.name}, by {join.key}: {join.message.full_name}, followed as a table"
        if isinstance(pipeline, RoutePipeline) and pipeline.explode is not None:
            yield "explode", f"{pipeline.explode}: a record per element"
        for name, sql in pipeline.select.items():
            yield "select", f"{name} = {sql}"
    yield from _state(pipeline)
    yield "write", f"{pipeline.sink_topic}: {pipeline.sink.full_name} under {_key(pipeline)}"
    limit = definition.dead_letters.limit
    yield "set aside", f"{dead_letter_topic(source.topic)}: what cannot be used; {limit} at most"
    realtime = f"realtime, a checkpoint every {human(trigger.checkpoint)}"
    yield "run", realtime if trigger.mode == "realtime" else f"micro-batch, a batch every {human(trigger.interval)}"


def _key(pipeline: Pipeline) -> str:
    parts = [str(pipeline.group)]
    if isinstance(pipeline, MembersPipeline):
        parts += [str(pipeline.sort), str(pipeline.member)]
    elif isinstance(pipeline, AggregatePipeline) and pipeline.window is not None:
        parts += WINDOW_FIELDS
    return " + ".join(parts)


def _state(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if isinstance(pipeline, RoutePipeline):
        names = ", ".join(name.removeprefix("OPERATION_").lower() for name in pipeline.operations)
        yield "keep", f"nothing; rows of these changes are passed on, at least once: {names}"
        return
    aggregate = isinstance(pipeline, AggregatePipeline)
    what = "what the row adds to its groups" if aggregate else "the keys that the row stands under"
    forget = human(pipeline.definition.forget_deleted)
    yield "remember", f"per {pipeline.primary_key}: {what}; for {forget} after it is gone"
    if not isinstance(pipeline, AggregatePipeline):
        return
    if (window := pipeline.window) is not None:
        yield "window", f"{human(window.size)} by {window.time}; final {human(window.lateness)} after its end"
    for each in pipeline.aggregates:
        yield "keep", f"per group: {each.field.name} = {each.function}({each.argument or '*'})"
