"""Names the likely form of keys and values of other makers, and the remedy.

Guesses serve the reasons of dead letters alone: no record is read by one. `source.values` says how values are read.
"""

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

AS_TEXT = "let the producer write it as text (StringSerializer, in Connect StringConverter)"
PLAIN_VALUES = "registries are not read: write plain JSON (in Connect JsonConverter) or plain Protobuf"
_REGISTRY_HEAD = 5
"""A registry's serializers write a 0, and the number of the schema in four bytes, before the value that they wrap."""


def key_form(key: Column) -> Column:
    """Names the form of a record's key that is no plain text; null for text, and for a key of no known form."""
    size, text = F.octet_length(key), key.cast("string")
    binary = ~F.is_valid_utf8(text) | _begins(key, "00")
    # An empty or short text of a registry: its length stands behind the number of the schema.
    short_text = (F.hex(F.substring(key, 6, 1)).cast("string") == "04") & _begins(key, "00")
    forms = [
        F.when(binary & (size == 8) & ~short_text, _number(key, 64)),
        F.when(binary & (size == 4), _number(key, 32)),
        F.when(binary & (size == 16), F.concat(F.lit("16 bytes, like the UUID "), _uuid(key))),
        F.when(_begins(key, "00") & (size > _REGISTRY_HEAD), _registry(key)),
        F.when(~F.is_valid_utf8(text), F.lit("no UTF-8")),
        F.when(text.rlike(r'^\s*".*"\s*$'), F.lit("a JSON text in quotes")),
        F.when(text.rlike(r"^\s*\{.*\}\s*$"), F.lit("a JSON object")),
    ]
    return F.concat(F.lit("the record's key is "), F.coalesce(*forms), F.lit(f": {AS_TEXT}"))


def value_form(value: Column) -> Column:
    """Names the form of a record's value that is neither text nor a message; null for a value of no known form."""
    packed = "let Kafka's producer compress (compression.type), not the program before it"
    registry = _begins(value, "00") & (F.octet_length(value) > _REGISTRY_HEAD)
    forms = [
        F.when(registry, F.concat(_registry(value), F.lit(f": {PLAIN_VALUES}"))),
        F.when(_begins(value, "1F8B"), f"gzip: {packed}"),
        F.when(_begins(value, "28B52FFD"), f"Zstandard: {packed}"),
        F.when(_begins(value, "4F626A01"), "a file of Avro: one record of Kafka must be one row"),
        F.when(_begins(value, "ACED0005"), "an object that Java has serialized: write JSON or Protobuf"),
    ]
    return F.concat(F.lit("the value looks like "), F.coalesce(*forms))


def _begins(value: Column, head: str) -> Column:
    return F.hex(F.substring(value, 1, len(head) // 2)) == head


def _number(key: Column, bits: int) -> Column:
    """Names the number that big-endian bytes encode, as Java's serializers write one."""
    unsigned = F.conv(F.hex(key), 16, 10).cast("decimal(20,0)")
    beyond, all_numbers = F.lit(Decimal(2 ** (bits - 1))), F.lit(Decimal(2**bits))
    signed = F.when(unsigned >= beyond, unsigned - all_numbers).otherwise(unsigned)
    return F.concat(F.lit(f"{bits // 8} bytes, like the number "), signed.cast("string"))


def _uuid(key: Column) -> Column:
    return F.regexp_replace(F.lower(F.hex(key)), "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")


def _registry(value: Column) -> Column:
    number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
    return F.concat(F.lit("what a schema registry's serializer writes (a 0, then schema "), number, F.lit(")"))
