"""Lists the stores that a consumer may read, for a page or a program to offer before it asks for any row."""

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from ws_edge.http.rest import Document, Identify, failures
from ws_edge.model.authorization import OwnerRule
from ws_edge.model.stores import Store, Stores, check_known


class OwnerDocument(Document):
    """Each row is for the consumer with the id that stands in a field of it."""

    field: str = Field(examples=["customer_id"])
    group: bool = Field(description="Whether the group of every key is that id as well.")


class ReadableStoreDocument(Document):
    """One store that the caller may read."""

    store: str = Field(examples=["orders-by-customer"])
    message: str = Field(
        description="The message of its rows, or `json` for rows of JSON.", examples=["statecast.orders.v1.Order"]
    )
    description: str | None = Field(description="One line for people, as the pipeline's file says.")
    keeps: Literal["one", "members"] = Field(description="One value per group, or many, each with sort and member.")
    ranges: bool = Field(
        description="Whether its groups are read and watched as ranges; else its keys are, one by one."
    )
    readers: Literal["staff", "everyone"] | OwnerDocument = Field(description="Who sees rows; staff see all of them.")


class StoreListDocument(Document):
    """The stores that the caller may read, by name."""

    stores: list[ReadableStoreDocument]


@dataclass(frozen=True)
class StoreListing:
    """Lists the stores that have rows for a consumer."""

    stores: Stores
    identify: Identify

    def router(self) -> APIRouter:
        router = APIRouter(responses=failures())
        router.add_api_route("/v1/stores", self.list_stores, response_model=StoreListDocument)
        return router

    async def list_stores(self, request: Request) -> Response:
        """Answers with the stores that the caller may read: staff all, others those that can have rows for them."""
        consumer = await self.identify(request)
        check_known(self.stores)
        readable = (store for store in self.stores.values() if store.rule.has_rows_for(consumer))
        return JSONResponse({"stores": [_document(store) for store in readable]})


def _document(store: Store) -> dict[str, Any]:
    return {
        "store": store.name,
        "message": store.kind,
        "description": store.description,
        "keeps": "members" if store.members else "one",
        "ranges": store.members,
        "readers": _readers(store.rule),
    }


def _readers(rule: OwnerRule) -> str | dict[str, Any]:
    if rule.field is not None:
        return {"field": rule.field, "group": rule.group}
    return "everyone" if rule.everyone else "staff"
