package io.statecast.spark;

import java.math.BigDecimal;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import scala.collection.immutable.Seq;

/**
 * Passes on a value that will be cast to another type; null in place of each number that Spark's cast would cut.
 *
 * <p>Spark takes 2^63, which a double can be, for the largest bigint, and a great number of seconds for the last time.
 * Elements of arrays and fields of structs are cast, and treated, like values alone.
 */
public final class WithinType extends Interpreted {
  static final BigDecimal BEYOND_LONG = BigDecimal.valueOf(2).pow(63);

  /** The first number of seconds that is no time: times are microseconds in a bigint. */
  static final BigDecimal BEYOND_SECONDS = BEYOND_LONG.movePointLeft(6);

  public WithinType(Expression value, DataType target) {
    this(value, Literal.create(null, target));
  }

  private WithinType(Expression value, Expression ofTarget) {
    super(value, ofTarget);
  }

  /** Returns whether a cast from one type to the other cuts some numbers. */
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
  public DataType dataType() {
    return super.dataType().asNullable();
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    return held(value(0, row), super.dataType(), children().apply(1).dataType());
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
    return Within.isWithin(value, bound.negate(), bound) ? value : null;
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

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new WithinType(children.apply(0), children.apply(1));
  }
}
