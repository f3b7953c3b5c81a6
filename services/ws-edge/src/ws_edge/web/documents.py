"""The JSON documents of the REST answers, as OpenAPI describes them; int64 fields are strings, as in proto3 JSON."""

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SURROGATE = re.compile("[\ud800-\udfff]")


class Document(BaseModel):
    """What all have in common: nothing but what is described may stand in them, and texts are Unicode."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        """JSON can escape one half of a surrogate pair, which no key and no record can hold."""
        if isinstance(value, str) and SURROGATE.search(value):
            raise ValueError("it has half of a character: send both escapes of a surrogate pair")
        return value


class ErrorBody(Document):
    """Why a call failed."""

    code: str = Field(description="A stable word for programs.", examples=["forbidden"])
    message: str = Field(description="What is wrong and what to do about it, for people.")


class ErrorReply(Document):
    """The body of every failed call."""

    error: ErrorBody


class PositionDocument(Document):
    """How far a key has been read; pass it back on a socket to be told only what is newer."""

    epoch: str = Field(examples=["4611686018427387904"])
    offset: str = Field(examples=["1042"])


class OrderStatusDocument(Document):
    """An order as customers see it; fields that are not known yet are empty."""

    order_id: str = Field(examples=["order-000001"])
    status: str = Field(description="Placed, Paid, Packed, Shipped, Delivered or Cancelled.", examples=["Shipped"])
    estimated_delivery: str = Field(description="RFC 3339 full-date, or empty.", examples=["2024-08-28"])
    tracking_number: str = Field(examples=["1Z999AA10123456784"])


class OrderUpdatesReply(Document):
    """One answer: the same document as a frame of the socket."""

    type: Literal["order_status_update"]
    data: OrderStatusDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")


class KeyDocument(Document):
    """The key of a row; sort and member are absent in stores with one value per group."""

    group: str = Field(examples=["customer-0001"])
    sort: str | None = Field(None, examples=["2024-08-28T12:34:56.123456Z"])
    member: str | None = Field(None, examples=["order-000001"])


class StateDocument(Document):
    """One row of a store."""

    key: KeyDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")
    row: dict[str, Any] = Field(description="The row in proto3 JSON, in the message of the store.")


class PageDocument(Document):
    """A page of a group, in the order of sort."""

    states: list[StateDocument]
    next_page_token: str = Field(description="Pass it back as page_token; empty after the last page.")


class ReplicaDocument(Document):
    """One instance that serves a partition."""

    instance: str
    address: str
    rank: int = Field(description="1 for the owner.")
    serving: bool
    lag_records: str
    lag_ms: str
    current_through: PositionDocument | None = None


class ShardDocument(Document):
    """One partition of a store."""

    store: str
    partition: int
    replicas: list[ReplicaDocument]


class StoreDocument(Document):
    """One store."""

    store: str
    topic: str
    message: str
    partitions: int
    owner: str
    history: bool
    partitioner: str


class ShardMapDocument(Document):
    """The shard map as an instance of the query service sees it."""

    stores: list[StoreDocument]
    shards: list[ShardDocument]


class ConsumerDocument(Document):
    """Who the gateway says is asking."""

    id: str = Field(description="The customer whose rows may be seen; empty for staff without one.")
    name: str
    staff: bool = Field(description="Whether every row may be seen.")


class TotalsDocument(Document):
    """Counted since the edge has started."""

    frames_sent: int
    skipped: int = Field(description="Versions replaced by newer ones before a slow client took them.")
    polled_keys: int
    changed_keys: int
    failed_keys: int
    sockets_opened: int
    stalled_sockets: int = Field(description="Sockets closed because their client did not read.")


class AgesDocument(Document):
    """How old changes were, from the commit at the source, when their frames were handed to sockets."""

    bounds_s: list[float] = Field(description="Upper bounds, in seconds, rising.")
    counts: list[int] = Field(description="Changes per bound, each counted once; last those above all bounds.")


class EdgeDocument(Document):
    """What the edge that answers is doing."""

    instance: str
    uptime_s: float
    not_ready: str | None = Field(description="Why it should get no traffic; null when it is ready.")
    sockets: int
    subscriptions: int
    unique_keys: int = Field(description="Keys that are watched: what is read, however many watch.")
    totals: TotalsDocument
    ages: AgesDocument


class HealthDocument(Document):
    """Whether the edge lives, or is ready."""

    status: Literal["ok", "not ready"]
    reason: str | None = None


class TicketDocument(Document):
    """A ticket for the credential of the call."""

    ticket: str = Field(description="Soon, send it in a frame `auth_refresh` or open `/v1/tickets/stream?ticket=`.")
    expires_at: str | None = Field(
        default=None,
        description="When the credential of the call expires, RFC 3339; left out when it never does.",
        examples=["2024-08-28T12:34:56Z"],
    )


class RevocationRequest(Document):
    """Whose access is to end."""

    consumer: str = Field(min_length=1, description="The consumer's custom id, or its username when it has none.")


class RevocationDocument(Document):
    """A revocation."""

    consumer: str
    revoked_at: str = Field(description="RFC 3339.")
