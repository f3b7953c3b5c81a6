package io.statecast.spark.state;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import scala.Function2;

/** Takes values, nulls included, out of rows of one type; a row's own access to a value looks its type up each time. */
public final class RowReader implements Serializable {
  private static final long serialVersionUID = 1L;

  private final StructType type;
  private transient Function2<SpecializedGetters, Object, Object>[] fields;

  public RowReader(StructType type) {
    this.type = type;
  }

  /** Returns the values of a row. */
  public Object[] values(InternalRow row) {
    Object[] values = new Object[type.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = value(row, i);
    }
    return values;
  }

  @SuppressWarnings("unchecked")
  public Object value(InternalRow row, int field) {
    if (fields == null) {
      fields = new Function2[type.size()];
      for (int i = 0; i < fields.length; i++) {
        fields[i] = accessor(type.apply(i).dataType());
      }
    }
    return fields[field].apply(row, field);
  }

  private static Function2<SpecializedGetters, Object, Object> accessor(DataType type) {
    Function2<SpecializedGetters, Object, Object> any = InternalRow.getAccessor(type, true);
    if (!(type instanceof DecimalType number) || number.precision() <= Decimal.MAX_LONG_DIGITS()) {
      return any;
    }
    return (row, field) ->
        row instanceof UnsafeRow stored ? decimal(stored.getBinary((Integer) field), number) : any.apply(row, field);
  }

  /** Returns the number with these bytes, the highest first: as a long if it fits, where Spark makes a BigDecimal. */
  static Decimal decimal(byte[] bytes, DecimalType type) {
    if (bytes == null) {
      return null;
    }
    BigInteger unscaled = new BigInteger(bytes);
    return bytes.length > Long.BYTES
        ? Decimal.apply(new BigDecimal(unscaled, type.scale()), type.precision(), type.scale())
        : Decimal.apply(unscaled.longValue(), type.precision(), type.scale());
  }
}
