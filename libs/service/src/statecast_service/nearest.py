"""Finds the valid name that a wrong one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_COMPARED = 80  # comparing takes the product of the lengths, and the wrong name may come from outside


def nearest(wrong: str, valid: Iterable[str]) -> str | None:
    """Returns the valid name that is most like the wrong one; None when none is near."""
    matches = get_close_matches(wrong[:MAX_COMPARED], list(valid), n=1, cutoff=0.5)
    return matches[0] if matches else None


def suggest(wrong: str, valid: Iterable[str]) -> str:
    """Returns the end of an error's text: the nearest valid name, or all of them when none is near."""
    names = sorted(valid)
    match = nearest(wrong, names)
    return f"did you mean {match}?" if match else f"one of: {', '.join(names) or 'none'}"
