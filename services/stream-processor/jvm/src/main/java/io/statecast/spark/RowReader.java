package io.statecast.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.StructType;
import scala.Function2;

/** Takes values, nulls included, out of rows of one type; a row's own access to a value looks its type up each time. */
final class RowReader implements Serializable {
  private static final long serialVersionUID = 1L;

  private final StructType type;
  private transient Function2<SpecializedGetters, Object, Object>[] fields;

  RowReader(StructType type) {
    this.type = type;
  }

  /** Returns the values of a row. */
  Object[] values(InternalRow row) {
    Object[] values = new Object[type.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = value(row, i);
    }
    return values;
  }

  @SuppressWarnings("unchecked")
  Object value(InternalRow row, int field) {
    if (fields == null) {
      fields = new Function2[type.size()];
      for (int i = 0; i < fields.length; i++) {
        fields[i] = InternalRow.getAccessor(type.apply(i).dataType(), true);
      }
    }
    return fields[field].apply(row, field);
  }
}
