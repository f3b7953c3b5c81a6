"""The resume token of a place: a position, bound to the question that it answers.

A token is the base64url of an epoch, XORed with a mask of its question, and of two varints: the offset + 1, and by how
many offsets rows that were sent may be newer, left out when 0. With any other question, or another message of the rows
where it names one, it decodes to an epoch that no topic has, so the place begins with all rows.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from ws_edge.model.authorization import Consumer
from ws_edge.model.questions import Question
from ws_edge.model.states import Position
from ws_edge.model.stores import Store

VERSION = "1"
EPOCH_BYTES = 8
MAX_EPOCH = 2**63 - 1
MAX_TOKEN = 40
"""The length of the longest token that is read, in characters; a current token has 15."""


class Resumption(NamedTuple):
    """The content of a token: everything through `position` was sent, and maybe rows up to `ahead` offsets newer."""

    position: Position
    ahead: int = 0

    @property
    def needed(self) -> Position:
        """The position that a replica must have reached before it answers, so that no row of the client goes back."""
        return Position(self.position.epoch, self.position.offset + self.ahead)


class Mask(NamedTuple):
    """The masks of a question's tokens. The highest bit, which no epoch has, tells by which one a token was made."""

    question: int
    """That of the tokens that this release writes."""
    message: int
    """That of tokens which also name the message of the rows. The next release writes them; 0.3 does not know them."""


def mask_of(question: Question, fields: tuple[str, ...], consumer: Consumer) -> Mask:
    """Returns the masks of a question. They differ when anything differs that may change the rows of the answer."""
    store, reader = question.store, reader_of(question.store, consumer)
    asked = store.name, question.group, question.sort_from, question.sort_to, question.limit, question.reverse
    rights, message = _parts_of(store)
    mask = _digest("\0".join((VERSION, *map(str, asked), "\1".join(fields), rights, reader)))
    return Mask(mask, mask ^ message)


def reader_of(store: Store, consumer: Consumer) -> str:
    """Returns a text that is the same for consumers who see the same rows of the store."""
    if store.rule.everyone and not store.private:
        return ""
    return f"{'' if consumer.staff else consumer.principal}\0{consumer.staff}"


def token_of(mask: Mask, position: Position, ahead: int = 0) -> str:
    """Returns the token of a position; `ahead` is by how many offsets rows that were sent may be newer."""
    content = (position.epoch ^ mask.question).to_bytes(EPOCH_BYTES, "big") + varint(position.offset + 1)
    if ahead:
        content += varint(ahead)
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def resumption_of(mask: Mask, token: str) -> Resumption | None:
    """Reads a token. Returns None when it is recognizably not one of this question; then all rows are sent."""
    if not token or len(token) > MAX_TOKEN:
        return None
    try:
        content = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    masked, numbers = int.from_bytes(content[:EPOCH_BYTES], "big"), _varints(content[EPOCH_BYTES:])
    epoch = min(masked ^ mask.question, masked ^ mask.message)
    if numbers is None or not 1 <= len(numbers) <= 2 or max(numbers) > MAX_EPOCH:
        return None
    return Resumption(Position(epoch, numbers[0] - 1), numbers[1] if len(numbers) > 1 else 0)


def varint(number: int) -> bytes:
    """Returns a number in the encoding of Protobuf."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


@lru_cache(maxsize=1024)
def _parts_of(store: Store) -> tuple[str, int]:
    """Returns the part of the first mask that says who may see what, and the difference of the second from it."""
    return f"{store.rule!r}\0{store.private!r}", _digest(store.kind) | MAX_EPOCH + 1


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=EPOCH_BYTES).digest(), "big")


def _varints(content: bytes) -> list[int] | None:
    """Returns the numbers; None when the last one is cut off."""
    numbers, number, shift = list[int](), 0, 0
    for byte in content:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return None if shift else numbers
