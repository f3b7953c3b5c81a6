"""Types of arguments of the commands of `statecast`, for argparse."""

import argparse
from collections.abc import Callable


def whole_number(maximum: int) -> Callable[[str], int]:
    """Returns a parser of numbers from 1 to the maximum; it raises ArgumentTypeError for any other text."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else 0
        if not 1 <= number <= maximum:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to {maximum}")
        return number

    return read


def seconds(maximum: int) -> Callable[[str], float]:
    """Returns a parser of seconds above 0, at most the maximum; it raises ArgumentTypeError for any other text."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= maximum:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds above 0, and at most {maximum}")
        return number

    return read
