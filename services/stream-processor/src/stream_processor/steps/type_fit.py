"""Says which of Spark's types can stand in for which without a value being changed."""

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    StructType,
)

_WIDER: dict[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (LongType, DoubleType),
    LongType: (DoubleType,),
    FloatType: (DoubleType,),
    DecimalType: (DoubleType,),
}


def fits(found: DataType, wanted: DataType) -> bool:
    """Whether all values of `found` can be written where `wanted` is declared; integers may become doubles."""
    if isinstance(found, NullType) or found == wanted:
        return True
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        pairs = zip(found.fields, wanted.fields, strict=False)
        return found.names == wanted.names and all(fits(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return found.containsNull <= wanted.containsNull and fits(found.elementType, wanted.elementType)
    return type(wanted) in _WIDER.get(type(found), ())
