"""Who is asking, and which keys and rows they may see."""

from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest

from ws_edge.errors import ForbiddenError, GatewayRequiredError
from ws_edge.states import StoreKey, Version

STAFF_GROUP = "staff"
SECRET = b"x-gateway-secret"
CUSTOM_ID = b"x-consumer-custom-id"
USERNAME = b"x-consumer-username"
GROUPS = b"x-consumer-groups"
IDENTITY_HEADERS = frozenset({SECRET, CUSTOM_ID, USERNAME, GROUPS})


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who the gateway says is asking. `id` is the customer's id; staff see every row."""

    id: str
    name: str
    staff: bool


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """Who may see the rows of a store: staff, and the consumer whose id stands in the row's field.

    `field` is None in stores that are for staff alone. With `group` the group of every key is a consumer's id as well,
    so that a foreign key is refused before it is looked up.
    """

    field: str | None
    group: bool = False


def identify(headers: Iterable[tuple[bytes, bytes]], secret: str) -> Consumer:
    """Reads the consumer from the headers that the gateway sets; header names are in lower case.

    Raises GatewayRequiredError when the gateway's secret is not there or wrong, when a header of these stands there
    twice, or when neither a customer nor staff is named.
    """
    known: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in IDENTITY_HEADERS:
            if name in known:
                raise GatewayRequiredError(f"the header {name.decode()} was sent twice")
            known[name] = value
    if not compare_digest(known.get(SECRET, b""), secret.encode()):
        raise GatewayRequiredError("this address is for the gateway alone: connect through the gateway")
    groups = {group.strip() for group in known.get(GROUPS, b"").decode("latin-1").split(",")}
    consumer = Consumer(_text(known, CUSTOM_ID), _text(known, USERNAME), STAFF_GROUP in groups)
    if not consumer.id and not consumer.staff:
        raise GatewayRequiredError("the gateway named no consumer: sign in, and see that the consumer has a custom_id")
    return consumer


def check_staff(consumer: Consumer, what: str) -> None:
    """Raises ForbiddenError unless the consumer is staff."""
    if not consumer.staff:
        raise ForbiddenError(f"{what} is for staff only")


def check_key(consumer: Consumer, rule: OwnerRule, key: StoreKey) -> None:
    """Raises ForbiddenError when the key alone shows that the consumer may not see its row."""
    if rule.field is None:
        check_staff(consumer, f"the store {key.store}")
    elif rule.group and not consumer.staff and key.group != consumer.id:
        raise ForbiddenError(f"the group {key.group} of the store {key.store} belongs to somebody else")


def may_see(consumer: Consumer, version: Version) -> bool:
    """Whether the consumer may see what the key holds; that there is no row may be seen by all."""
    return consumer.staff or version.row is None or (version.owner == consumer.id and bool(consumer.id))


def check_row(consumer: Consumer, version: Version) -> None:
    """Raises ForbiddenError when the row belongs to somebody else."""
    if not may_see(consumer, version):
        raise ForbiddenError(f"{version.key} belongs to somebody else")


def _text(headers: dict[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()
