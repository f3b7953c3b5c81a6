"""Payloads as JSON values, by the message that the service names for a store."""

import base64
import json
from collections.abc import Callable

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

import statecast

Decode = Callable[[bytes], object]


def decoder(message: str) -> Decode:
    """Returns what turns the payloads of a store into JSON values.

    `message` is a message of the contract, `json` or `bytes`. Bytes, and what is not what it is said to be or is of a
    message that this client's contract does not have, become `{"base64": …}`.
    """
    if message == "json":
        return _from_json
    try:
        descriptor = _pool().FindMessageTypeByName(message)
    except KeyError:
        return _as_base64
    kind = GetMessageClass(descriptor)

    def decode(payload: bytes) -> object:
        try:
            return MessageToDict(kind.FromString(payload), preserving_proto_field_name=True)
        except DecodeError:
            return _as_base64(payload)

    return decode


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(statecast.descriptor_set()).file:
        pool.Add(file)
    return pool


def _from_json(payload: bytes) -> object:
    try:
        return json.loads(payload)
    except ValueError:
        return _as_base64(payload)


def _as_base64(payload: bytes) -> object:
    return {"base64": base64.b64encode(payload).decode()}
