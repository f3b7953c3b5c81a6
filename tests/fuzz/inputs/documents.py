"""Documents of JSON and YAML: sound ones, changed in a few places, as text."""

import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from inputs.texts import halves, odd_numbers, odd_texts

RAW = re.compile(r'"\\u0001raw:((?:[^"\\]|\\.)*)"')
TEXT_CHANGES = ("cut", "drop", "insert", "repeat")
CHANGES = ("drop", "replace", "rename", "repeat", "wrap", "swap")


def raw(text: str) -> str:
    """Returns a value that stands in the text as it is, so that it need not be valid."""
    return f"\x01raw:{text}"


DEPTHS = (2, 50, 99, 100, 101, 300, *range(900, 1000, 10), 3_000)

nested = st.builds(
    lambda depth, ends: raw(ends[0] * depth + "0" + ends[1] * depth),
    st.sampled_from(DEPTHS),
    st.sampled_from((("[", "]"), ('{"a":', "}"))),
)
"""Values that are nested so deeply that a reader's stack may end."""

odd_values: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | odd_numbers
    | odd_numbers.map(str)
    | odd_texts
    | halves
    | st.sampled_from(([], {}, [None], {"": ""}, raw("1e999"), raw("-0"), raw("1" * 5_000), raw("1.5e-400")))
    | nested
)


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[Any], more_values: Iterable[Any] = ()) -> Any:
    """Returns a document with up to three changes: fields dropped, renamed, repeated, wrapped, swapped or replaced."""
    more = tuple(more_values)
    values = st.booleans().flatmap(lambda known: st.sampled_from(more) if known else odd_values) if more else odd_values
    top = {"": deepcopy(draw(documents))}
    for _ in range(draw(st.integers(0, 3))):
        if not top:
            return None
        container, key = draw(st.sampled_from(list(_places(top))))
        _change(draw, draw(st.sampled_from(CHANGES)), top, container, key, values)
    return top.get("")


def text_of(document: Any) -> str:
    """Returns the document as JSON; raw values as they are."""
    return RAW.sub(lambda match: str(json.loads(f'"{match[1]}"')), json.dumps(document))


@st.composite
def damaged_text(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Returns a text, half of the time with a piece of it cut off, dropped, repeated, or something inserted."""
    text = draw(texts)
    if draw(st.booleans()):
        return text
    at = draw(st.integers(0, len(text)))
    end = min(len(text), at + draw(st.integers(0, 20)))
    match draw(st.sampled_from(TEXT_CHANGES)):
        case "cut":
            return text[:at]
        case "drop":
            return text[:at] + text[end:]
        case "insert":
            return text[:at] + draw(odd_texts) + text[at:]
        case _:
            return text[:end] + text[at:]


def _change(draw: st.DrawFn, kind: str, top: Any, container: Any, key: Any, values: st.SearchStrategy[Any]) -> None:
    value = container[key]
    if kind == "drop":
        del container[key]
    elif kind == "replace":
        container[key] = deepcopy(draw(values))  # it may be changed itself
    elif kind == "rename" and isinstance(container, dict) and container is not top:
        container[draw(odd_texts | halves)] = container.pop(key)
    elif kind == "repeat":
        container[key] = [value] * draw(st.sampled_from((1, 2, 30)))
    elif kind == "wrap":
        container[key] = {draw(odd_texts): value}
    else:
        other, place = draw(st.sampled_from(list(_places(top))))
        container[key] = deepcopy(other[place])


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every place of a document as its container and its key or index there."""
    keys = (
        container.keys()
        if isinstance(container, dict)
        else range(len(container))
        if isinstance(container, list)
        else ()
    )
    for key in keys:
        yield container, key
        yield from _places(container[key])
