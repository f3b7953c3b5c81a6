package io.statecast.spark.expressions;

import java.math.BigDecimal;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** Passes on a number or date from `low` up to below `high`; makes null of another one, and of NaN. */
record Within(BigDecimal low, BigDecimal high) implements Guard {
  static final BigDecimal BEYOND_LONG = BigDecimal.valueOf(2).pow(63);

  /** The first number of seconds that is no time: times are microseconds in a bigint. */
  static final BigDecimal BEYOND_SECONDS = BEYOND_LONG.movePointLeft(6);

  @Override
  public boolean makesNull() {
    return true;
  }

  @Override
  public Object pass(Object value, Object none) {
    BigDecimal number = exact(value);
    return number != null && number.compareTo(low) >= 0 && number.compareTo(high) < 0 ? value : null;
  }

  private static BigDecimal exact(Object number) {
    if (number instanceof Decimal decimal) {
      return decimal.toJavaBigDecimal();
    } else if (number instanceof Double || number instanceof Float) {
      double value = ((Number) number).doubleValue();
      return Double.isFinite(value) ? new BigDecimal(value) : null;
    }
    return number == null ? null : BigDecimal.valueOf(((Number) number).longValue());
  }

  /**
   * Passes on a value that will be cast to another type; makes null of each number that Spark's cast would cut.
   *
   * <p>Spark takes 2^63, which a double can be, for the largest bigint, and a great number of seconds for the last
   * time. Elements of arrays and fields of structs are cast, and treated, like values alone.
   */
  record Type(DataType from, DataType to) implements Guard {
    /** Returns whether the cast cuts some numbers. */
    static boolean cuts(DataType from, DataType to) {
      if (from instanceof ArrayType array && to instanceof ArrayType target) {
        return cuts(array.elementType(), target.elementType());
      } else if (from instanceof StructType struct && to instanceof StructType target) {
        int fields = Math.min(struct.size(), target.size());
        return IntStream.range(0, fields).anyMatch(at -> cuts(type(struct, at), type(target, at)));
      }
      return bound(from, to) != null;
    }

    @Override
    public DataType type(DataType value) {
      return value.asNullable();
    }

    @Override
    public boolean makesNull() {
      return true;
    }

    @Override
    public Object pass(Object value, Object none) {
      return held(value, from, to);
    }

    private static Object held(Object value, DataType from, DataType to) {
      if (value == null || !cuts(from, to)) {
        return value;
      } else if (value instanceof ArrayData array) {
        Object[] held = new Object[array.numElements()];
        for (int at = 0; at < held.length; at++) {
          held[at] = held(array, at, ((ArrayType) from).elementType(), ((ArrayType) to).elementType());
        }
        return new GenericArrayData(held);
      } else if (value instanceof InternalRow row) {
        Object[] held = new Object[row.numFields()];
        for (int at = 0; at < held.length; at++) {
          held[at] = held(row, at, type((StructType) from, at), type((StructType) to, at));
        }
        return new GenericInternalRow(held);
      }
      BigDecimal bound = bound(from, to);
      return new Within(bound.negate(), bound).pass(value, null);
    }

    private static Object held(SpecializedGetters values, int at, DataType from, DataType to) {
      return values.isNullAt(at) ? null : held(values.get(at, from), from, to);
    }

    /** Returns the first number that is too large for the cast; null if the cast cuts none. */
    private static BigDecimal bound(DataType from, DataType to) {
      if (to instanceof TimestampType && from instanceof NumericType) {
        return BEYOND_SECONDS;
      }
      boolean rounds = from instanceof DoubleType || from instanceof FloatType;
      return rounds && to instanceof IntegralType ? BEYOND_LONG : null;
    }

    private static DataType type(StructType struct, int at) {
      return struct.fields()[at].dataType();
    }
  }
}
