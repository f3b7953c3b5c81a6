package io.statecast.spark;

import java.io.Serializable;
import java.math.BigDecimal;
import java.util.Comparator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/** One of the numbers that a group's lines are folded into; `held` is null until a line has a value. */
abstract class GroupPart implements Serializable {
  private static final long serialVersionUID = 1L;

  final String name;
  final DataType held;
  final DataType shown;

  private GroupPart(String name, DataType held, DataType shown) {
    this.name = name;
    this.held = held;
    this.shown = shown;
  }

  /** What is held after a line with this value, which is not null. */
  abstract Object fold(Object held, Object value);

  /** What a record shows of it. */
  Object show(Object held) {
    return held;
  }

  /** The sum of bigints, or of decimals, which get all digits. */
  static GroupPart sum(String name, DataType value) {
    boolean decimal = value instanceof DecimalType;
    DataType sum = decimal ? new DecimalType(DecimalType.MAX_PRECISION(), ((DecimalType) value).scale()) : DataTypes.LongType;
    return new GroupPart(name, sum, sum) {
      @Override
      Object fold(Object held, Object value) {
        if (held == null) {
          return value;
        }
        return decimal ? ((BigDecimal) held).add((BigDecimal) value) : (Object) Math.addExact((Long) held, (Long) value);
      }
    };
  }

  /**
   * The value that comes last in Spark's order, or first.
   *
   * @param sign 1 or -1
   */
  static GroupPart extreme(String name, DataType value, int sign) {
    return new GroupPart(name, value, value) {
      private transient Comparator<Object> order;

      @Override
      Object fold(Object held, Object value) {
        if (order == null) {
          order = SparkInternals.order(shown);
        }
        return held != null && sign * order.compare(held, value) >= 0 ? held : value;
      }
    };
  }

  /** The values of {@link CollectSet}; those of a line are struct(removed, added). */
  static GroupPart set(String name, CollectSet set) {
    return new GroupPart(name, DataTypes.BinaryType, set.dataType()) {
      @Override
      Object fold(Object held, Object value) {
        return set.counted((byte[]) held, (Row) value);
      }

      @Override
      Object show(Object held) {
        return set.evaluate(RowFactory.create(held));
      }
    };
  }
}
