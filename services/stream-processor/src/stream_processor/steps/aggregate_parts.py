"""Names the numbers that an aggregate is made of: those that rows contribute, and that groups add up."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stream_processor.definition.aggregates import Aggregate

PartFunction = Literal["sum", "count", "min", "max"]


@dataclass(frozen=True)
class Part:
    """One number beside the count of a group's rows; `argument` is SQL on the row, `field` the file's key for it."""

    name: str
    function: PartFunction
    argument: str
    field: str


def parts(aggregates: tuple[Aggregate, ...]) -> list[Part]:
    """The parts of all aggregates; an average has two, and count(*) none, for rows are counted anyway."""
    return [part for number, each in enumerate(aggregates) for part in _parts(number, each)]


def _parts(number: int, aggregate: Aggregate) -> Iterator[Part]:
    if aggregate.argument is None:
        return
    functions: dict[str, tuple[PartFunction, ...]] = {
        "sum": ("sum",),
        "avg": ("sum", "count"),
        "min": ("min",),
        "max": ("max",),
    }
    for function in functions[aggregate.function]:
        yield Part(f"{function}_{number}", function, aggregate.argument, aggregate.field.name)
