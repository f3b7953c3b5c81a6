"""YAML files of the operators: sound ones that have been changed, as bytes."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from inputs.documents import damaged_text, mutated, raw, text_of

ODD_YAML = tuple(
    raw(text)
    for text in (
        "2024-08-28",
        "2024-99-99",
        "2024-08-28T25:61:61Z",
        "0x_",
        "0b_",
        "12:99:99",
        ".nan",
        "-.inf",
        "~",
        "!!binary a",
        "!!int x",
        "!!python/object:os.system x",
        "!!set {a, b}",
        "&a [*a]",
        "&b {a: *b}",
        "*unknown",
        "{? [a]: b}",
        "{? {a: b}: c}",
        "{1: a, null: b, 1.5: c, true: d}",
        "{a: 1, a: 2}",
        "{<<: {a: 1}}",
        "{<<: [1]}",
        "'\t'",
        "|\n x",
        "%TAG",
        "\u2028",
        "\U0001f600",
    )
)
"""Values that only YAML has: times, tags, anchors, merged keys, and keys that are no texts."""


def files(*sound: Any, more_values: Iterable[Any] = ()) -> st.SearchStrategy[bytes]:
    """Files that were one of the sound documents; now and then any bytes."""
    texts = damaged_text(mutated(st.sampled_from(sound), (*ODD_YAML, *more_values)).map(text_of))
    changed = texts.map(lambda text: text.encode(errors="surrogatepass"))
    return st.integers(0, 19).flatmap(lambda number: st.binary(max_size=50) if number == 13 else changed)
