"""Messages of Protobuf, filled in at random, and their encodings with a few bytes changed."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from inputs.texts import odd_texts

Likely = Mapping[str, st.SearchStrategy[Any]]
"""Values that a service knows, by the name of the message, or of the field of another type."""

LIMITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(2**31), 2**31 - 1),
}
BYTE_CHANGES = ("cut", "drop", "insert", "repeat", "flip")
ODD_BYTES = (b"", b"\0", b"\xff", b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x07", b"\x0b" * 200, b"\xfa\xff\x7f\x03abc")


def messages(kind: Descriptor, likely: Likely) -> st.SearchStrategy[Any]:
    """Messages with some of their fields set, and with small or extreme numbers."""
    fields = {field.name: _values(field, likely) for field in kind.fields}
    make: type[Message] = GetMessageClass(kind)
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: make(**values))


def sound_or_odd(known: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly known values: a request with one wrong field goes further than one with many."""
    return st.integers(0, 6).flatmap(lambda number: odd if number == 4 else known)


@st.composite
def damaged_bytes(draw: st.DrawFn, encodings: st.SearchStrategy[bytes]) -> bytes:
    """Bytes, half of the time with up to three changes."""
    data = bytearray(draw(encodings))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2, 3)))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(BYTE_CHANGES)):
            case "cut":
                del data[at:]
            case "drop":
                del data[at : at + draw(st.integers(1, 9))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=9) | st.sampled_from(ODD_BYTES))
            case "repeat":
                data += data[at:]
            case _:
                data[at : at + 1] = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[at : at + 1])
    return bytes(data)


def _values(field: FieldDescriptor, likely: Likely) -> st.SearchStrategy[Any]:
    values = messages(field.message_type, likely) if field.message_type else _scalars(field)
    name = field.message_type.name if field.message_type else field.name
    if name in likely:
        values = sound_or_odd(likely[name], values)
    return st.lists(values, max_size=3) if field.is_repeated else values


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=20)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return odd_texts
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type in LIMITS:
        low, high = LIMITS[field.cpp_type]
        return st.integers(0, 3) | st.sampled_from((low, low + 1, -1 if low else 0, high - 1, high))
    return st.floats()
