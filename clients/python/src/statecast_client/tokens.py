"""Reads the offset in a token, for people who debug a problem. Programs treat tokens as opaque text."""

from base64 import urlsafe_b64decode

from statecast_client.errors import InvalidError

_EPOCH_BYTES = 8


def position_in(token: str) -> tuple[int, int]:
    """Returns the offset of a token, and by how many offsets rows may be newer. Raises InvalidError.

    The epoch before them is masked with the question of the watch. A client cannot undo that.
    """
    try:
        content = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        content = b""
    numbers = _varints(content[_EPOCH_BYTES:])
    if not 1 <= len(numbers) <= 2:
        raise InvalidError(f"`{token}` is no token: pass one that a watch or a page has brought")
    return numbers[0] - 1, sum(numbers[1:])


def _varints(content: bytes) -> list[int]:
    """Returns the numbers; an empty list when the last one is cut off."""
    numbers, number, shift = list[int](), 0, 0
    for byte in content:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return [] if shift else numbers
