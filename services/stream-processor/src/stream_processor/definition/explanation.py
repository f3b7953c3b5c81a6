"""Tells what a pipeline does, step by step, in lines for people."""

from collections.abc import Iterator

from stream_processor.definition.dead_letter_topic import dead_letter_topic
from stream_processor.definition.duration import human
from stream_processor.definition.pipeline import Pipeline


def lines(pipeline: Pipeline) -> list[str]:
    """A headline, and a line per step: what is read, what becomes of a row, what is remembered, what is written."""
    steps = [*_steps(pipeline)]
    return [
        f"{pipeline.name}: {pipeline.shape}, from {pipeline.file}",
        *(f"  {name:<12}{text}" for name, text in steps),
    ]


def _steps(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    definition = pipeline.definition
    source = definition.source
    yield "read", f"{source.topic}: {source.message} as {source.format}"
    if definition.where is not None:
        yield "where", definition.where
    for join in pipeline.joins:
        yield "join", f"{join.topic} as {join.name}, by {join.key}: {join.message.full_name}, followed as a table"
    if pipeline.explode is not None:
        yield "explode", f"{pipeline.explode}: a record per element"
    for selected in pipeline.select:
        yield "select", f"{selected.field.name} = {selected.sql}"
    yield from _kept(pipeline)
    yield "write", f"{definition.sink.topic}: {pipeline.sink.full_name} under {_key(pipeline)}"
    yield (
        "set aside",
        f"{dead_letter_topic(source.topic)}: what cannot be used; {definition.dead_letters.limit} at most",
    )
    trigger = definition.trigger
    realtime = trigger.mode == "realtime"
    every = (
        f"a checkpoint every {human(trigger.checkpoint)}" if realtime else f"a batch every {human(trigger.interval)}"
    )
    yield "run", f"{trigger.mode}, {every}"


def _kept(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if pipeline.primary_key is None:
        names = ", ".join(name.removeprefix("OPERATION_").lower() for name in pipeline.operations)
        yield "keep", f"nothing; rows of these changes are passed on, at least once: {names}"
        return
    forget = human(pipeline.definition.forget_deleted)
    stands = "what the row adds to its groups" if pipeline.aggregates else "the keys that the row stands under"
    yield "remember", f"per {pipeline.primary_key}: {stands}; for {forget} after it is gone"
    if pipeline.window is not None:
        window = pipeline.window
        late = human(window.lateness)
        yield "window", f"{human(window.size)} by {window.time}; final {late} after its end"
    for each in pipeline.aggregates:
        yield "keep", f"per group: {each.field.name} = {each.function}({each.argument or '*'})"


def _key(pipeline: Pipeline) -> str:
    parts = [str(pipeline.group)]
    if pipeline.member is not None:
        parts += [str(pipeline.sort), str(pipeline.member)]
    if pipeline.window is not None:
        parts += ["window_start", "window_end"]
    return " + ".join(parts)
