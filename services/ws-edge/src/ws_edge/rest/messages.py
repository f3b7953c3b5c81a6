"""Bodies of calls: messages of the contract as proto3 JSON, with the contract's field names."""

import json
from typing import Any, TypeVar

from fastapi import Request, Response
from google.protobuf import json_format
from google.protobuf.message import Message

from statecast.push.v2.push_pb2 import ErrorBody, Problem
from ws_edge.codec.bodies import json_bytes
from ws_edge.codec.requests import UnknownField, one_line, values_of
from ws_edge.errors import MalformedFrameError
from ws_edge.model.documents import message_document

JSON = "application/json"
M = TypeVar("M", bound=Message)


def answer(message: Message, status: int = 200) -> Response:
    """Answers with a message, including the fields without presence that have their default."""
    return answer_json(message_document(message), status)


def answer_json(document: dict[str, Any], status: int = 200) -> Response:
    """Answers with a message that is already JSON."""
    return Response(json_bytes(document), status_code=status, media_type=JSON)


def failure(status: int, code: str, message: str, headers: Any = None) -> Response:
    """Answers with an ErrorBody."""
    body = json_format.MessageToDict(ErrorBody(error=Problem(code=code, message=message)))
    return Response(json_bytes(body), status_code=status, headers=headers, media_type=JSON)


async def body_of(request: Request, kind: type[M]) -> M:
    """Returns the message in the body of a request. Raises MalformedFrameError, also for an unknown field."""
    descriptor: Any = kind.DESCRIPTOR
    name, unknown = descriptor.name, list[UnknownField]()
    try:
        document = json.loads(await request.body())
        if not isinstance(document, dict):
            raise MalformedFrameError(f"the body is not a JSON object: send a {name}, as /openapi.json describes it")
        message = kind(**values_of(document, descriptor, unknown))
    except (ValueError, RecursionError) as error:
        raise MalformedFrameError(f"the body is not a {name}: {one_line(error)}") from error
    if unknown:
        raise MalformedFrameError(f"the body is not a {name}: {unknown[0].name} is unknown")
    return message
