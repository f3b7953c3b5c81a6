"""Finds the valid name that a wrong one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def hint(wrong: str, valid: Iterable[str]) -> str:
    """The end of an error's text: the nearest valid name, or all of them when none is near."""
    names = sorted(valid)
    near = get_close_matches(wrong, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"one of: {', '.join(names)}"
