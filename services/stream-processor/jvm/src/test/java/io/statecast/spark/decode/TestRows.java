package io.statecast.spark.decode;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Converts between Spark's internal rows and rows that a test can write down and compare. */
public final class TestRows {
  private TestRows() {}

  /** Returns the internal form of a value: a row of texts, numbers, moments, bytes, lists and rows, or one of these. */
  public static Object internal(Object value) {
    if (value instanceof Row row) {
      Object[] values = new Object[row.size()];
      Arrays.setAll(values, i -> internal(row.get(i)));
      return new GenericInternalRow(values);
    } else if (value instanceof List<?> list) {
      return new GenericArrayData(list.stream().map(TestRows::internal).toArray());
    } else if (value instanceof String text) {
      return UTF8String.fromString(text);
    } else if (value instanceof BigDecimal number) {
      return Decimal.apply(number);
    }
    return value instanceof Instant at ? (Object) (at.getEpochSecond() * 1_000_000 + at.getNano() / 1_000) : value;
  }

  public static InternalRow row(Object... values) {
    return (InternalRow) internal(RowFactory.create(values));
  }

  /** Returns the row of a message, null for null; its lists are Java's. */
  public static Row external(InternalRow row, Descriptor type) {
    if (row == null) {
      return null;
    }
    Object[] values = ((GenericInternalRow) row).values().clone();
    Arrays.setAll(values, i -> external(values[i], type.getFields().get(i)));
    return RowFactory.create(values);
  }

  /** Returns the result of decoding, struct(row, payload, problem). */
  static Row decoded(InternalRow decoded, Descriptor type) {
    Object problem = decoded.isNullAt(2) ? null : decoded.getUTF8String(2).toString();
    Row row = external(decoded.isNullAt(0) ? null : decoded.getStruct(0, type.getFields().size()), type);
    return RowFactory.create(row, decoded.isNullAt(1) ? null : decoded.getBinary(1), problem);
  }

  private static Object external(Object value, FieldDescriptor field) {
    if (value instanceof ArrayData array) {
      List<Object> values = new ArrayList<>();
      for (Object each : array.array()) {
        values.add(external(each, field));
      }
      return values;
    } else if (value instanceof InternalRow row) {
      return external(row, field.getMessageType());
    } else if (value instanceof Decimal number) {
      return number.toJavaBigDecimal();
    } else if (value instanceof UTF8String text) {
      return text.toString();
    }
    boolean isMoment = field.getType() == FieldDescriptor.Type.MESSAGE && value != null;
    return isMoment ? Instant.EPOCH.plus((Long) value, ChronoUnit.MICROS) : value;
  }
}
