"""Fields of type string with a decimal as text, marked by the contract's option statecast.change.v1.decimal."""

from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from statecast.change.v1 import decimal_pb2
from stream_processor.errors import ConfigurationError

MAX_PRECISION = 38
"""The digits that Spark's decimals have at most."""


@dataclass(frozen=True)
class Decimal:
    """How many digits the decimals of a field have at most, and how many of them are behind the point."""

    precision: int
    scale: int

    @property
    def width(self) -> int:
        """The characters of the longest text without a sign; there is always a digit before the point."""
        return max(self.precision - self.scale, 1) + (self.scale + 1 if self.scale else 0)


def decimal_of(field: FieldDescriptor) -> Decimal | None:
    """Returns the form of the field's decimals; None where its texts are none."""
    options = field.GetOptions()
    if not options.HasExtension(decimal_pb2.decimal):
        return None
    option = options.Extensions[decimal_pb2.decimal]
    return Decimal(option.precision, option.scale)


def check_decimals(messages: Iterable[Descriptor]) -> None:
    """Raises ConfigurationError, which names the field, where the option is of no use; in nested messages, too."""
    for message in messages:
        for field in message.fields:
            problem = _problem(field)
            if problem is not None:
                raise ConfigurationError(f"{field.full_name}: (statecast.change.v1.decimal) {problem}")
        check_decimals(message.nested_types)


def _problem(field: FieldDescriptor) -> str | None:
    decimal = decimal_of(field)
    if decimal is None:
        return None
    if field.type != FieldDescriptor.TYPE_STRING:
        return "goes with a field of type string, whose text is the decimal"
    if not 1 <= decimal.precision <= MAX_PRECISION:
        return f"has the precision {decimal.precision}; it must be from 1 to {MAX_PRECISION}"
    if not 0 <= decimal.scale <= decimal.precision:
        return f"has the scale {decimal.scale}; it must be from 0 to the precision, {decimal.precision}"
    return None
