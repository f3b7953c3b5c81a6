package io.statecast.spark.groups;

import io.statecast.spark.state.SparkInternals;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Computes one of the numbers of groups: the contribution of a row, the difference that a change makes to a group, and
 * the value that a group holds after all differences and shows. All are Spark's internal values; null stands for none.
 */
public abstract class GroupPart implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The types of a row's contribution, of a difference, and of the values that a group holds and shows. */
  final DataType contribution;

  final DataType difference;
  final DataType held;
  final DataType shown;

  private transient Comparator<Object> order;

  private GroupPart(DataType contribution, DataType difference, DataType held, DataType shown) {
    this.contribution = contribution;
    this.difference = difference;
    this.held = held;
    this.shown = shown;
  }

  /** Returns the contribution of a row with these values of its elements, at least one. */
  abstract Object contributed(Object[] values);

  /** Returns whether two contributions are equal; null equals null. */
  boolean same(Object one, Object other) {
    return one == null || other == null ? one == other : order().compare(one, other) == 0;
  }

  /** Returns Spark's order of contributions. */
  final Comparator<Object> order() {
    if (order == null) {
      order = SparkInternals.order(contribution);
    }
    return order;
  }

  /** Returns the difference that a row makes: it contributed `left` before, and contributes `entered` now. */
  abstract Object difference(Object left, Object entered);

  /** Returns the value that a group holds before the first difference. */
  Object nothing() {
    return null;
  }

  /** Returns the values that a group holds before the first difference, behind so many other columns. */
  static Object[] nothing(GroupPart[] parts, int behind) {
    Object[] values = new Object[behind + parts.length];
    for (int i = 0; i < parts.length; i++) {
      values[behind + i] = parts[i].nothing();
    }
    return values;
  }

  /** Returns the value that a group holds after a difference, which is not null. */
  abstract Object fold(Object held, Object difference);

  Object show(Object held) {
    return held;
  }

  /**
   * Makes a part by its function: `sum` of bigints or decimals, `min`, `max`, or `collect_set` of texts or bigints,
   * followed by the most values to show, and the most bytes of them.
   *
   * @param contribution the type of a row's contribution
   */
  static GroupPart of(String function, DataType contribution) {
    String[] words = function.split(" ");
    return switch (words[0]) {
      case "sum" -> new Sum(contribution);
      case "min" -> new Extreme(contribution, -1);
      case "max" -> new Extreme(contribution, 1);
      case "collect_set" -> new Values((ArrayType) contribution, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
      default -> throw new IllegalArgumentException("no function " + function);
    };
  }

  /** Makes the parts of an entry, struct(key, rows, parts…); their contributions follow its first two fields. */
  public static GroupPart[] all(List<String> functions, StructType entry) {
    GroupPart[] parts = new GroupPart[functions.size()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = of(functions.get(i), entry.apply(i + 2).dataType());
    }
    return parts;
  }

  /** Adds up. A row's own sum with too many digits counts as 0; a group's is null from then on. */
  private static final class Sum extends GroupPart {
    private static final long serialVersionUID = 1L;

    private final boolean decimal;

    Sum(DataType number) {
      this(number, number instanceof DecimalType of ? new DecimalType(DecimalType.MAX_PRECISION(), of.scale()) : number);
    }

    private Sum(DataType number, DataType sum) {
      super(number, sum, sum, sum);
      decimal = number instanceof DecimalType;
    }

    @Override
    Object contributed(Object[] values) {
      Object total = values[0];
      for (int i = 1; i < values.length && total != null; i++) {
        total = plus(total, values[i], contribution);
      }
      return total == null ? zero() : total;
    }

    @Override
    Object difference(Object left, Object entered) {
      Object now = entered == null ? zero() : entered;
      if (left == null) {
        return now;
      }
      return decimal ? ((Decimal) now).$minus((Decimal) left) : (Object) ((Long) now - (Long) left);
    }

    @Override
    Object nothing() {
      return zero();
    }

    @Override
    Object fold(Object held, Object difference) {
      return held == null ? null : plus(held, difference, this.held);
    }

    private Object zero() {
      return decimal ? Decimal.apply(0L, DecimalType.MAX_PRECISION(), ((DecimalType) held).scale()) : (Object) 0L;
    }

    private Object plus(Object one, Object other, DataType sum) {
      if (!decimal) {
        return Math.addExact((Long) one, (Long) other);
      }
      Decimal total = ((Decimal) one).$plus((Decimal) other);
      return total.changePrecision(((DecimalType) sum).precision(), ((DecimalType) sum).scale()) ? total : null;
    }
  }

  /** Keeps the last value in Spark's order, or the first; never takes it back. */
  private static final class Extreme extends GroupPart {
    private static final long serialVersionUID = 1L;

    private final int sign;

    Extreme(DataType value, int sign) {
      super(value, value, value, value);
      this.sign = sign;
    }

    @Override
    Object contributed(Object[] values) {
      return Arrays.stream(values).filter(Objects::nonNull).reduce(this::further).orElse(null);
    }

    @Override
    Object difference(Object left, Object entered) {
      return entered;
    }

    @Override
    Object fold(Object held, Object difference) {
      return held == null ? InternalRow.copyValue(difference) : further(held, InternalRow.copyValue(difference));
    }

    private Object further(Object one, Object other) {
      return sign * order().compare(one, other) >= 0 ? one : other;
    }
  }

  /**
   * Keeps the different values of a group's rows, sorted, while rows come and go: holds a {@link BoundedBag}, and shows
   * struct(values, truncated). A difference is struct(removed, added).
   */
  private static final class Values extends GroupPart {
    private static final long serialVersionUID = 1L;

    private final DataType value;
    private final int maxValues;
    private final int maxBytes;

    Values(ArrayType values, int maxValues, int maxBytes) {
      super(
          values,
          new StructType().add("removed", values).add("added", values),
          DataTypes.BinaryType,
          new StructType()
              .add("values", DataTypes.createArrayType(values.elementType(), false), false)
              .add("truncated", "boolean", false));
      this.value = values.elementType();
      this.maxValues = maxValues;
      this.maxBytes = maxBytes;
    }

    @Override
    Object contributed(Object[] values) {
      Object[] there = Arrays.stream(values).filter(Objects::nonNull).toArray();
      if (there.length > 1) {
        Arrays.sort(there, SparkInternals.order(value));
      }
      return new GenericArrayData(there);
    }

    @Override
    Object difference(Object left, Object entered) {
      return new GenericInternalRow(new Object[] {left, entered});
    }

    @Override
    Object fold(Object held, Object difference) {
      BoundedBag bag = bag((byte[]) held);
      count(bag, (InternalRow) difference, 0, -1);
      count(bag, (InternalRow) difference, 1, 1);
      return bag.bytes();
    }

    @Override
    Object show(Object held) {
      BoundedBag bag = bag((byte[]) held);
      List<Object> values = new ArrayList<>();
      for (byte[] each : bag.first(maxValues, maxBytes)) {
        values.add(value instanceof LongType ? (Object) SortedBytes.toLong(each) : UTF8String.fromBytes(each));
      }
      return new GenericInternalRow(
          new Object[] {new GenericArrayData(values.toArray()), bag.hasMoreThan(values.size())});
    }

    /** Reads the bag, with twice the bounds of what is shown: it stays complete for a while when shown values leave. */
    private BoundedBag bag(byte[] held) {
      return BoundedBag.of(held, 2 * maxValues, 2 * maxBytes);
    }

    private void count(BoundedBag bag, InternalRow difference, int side, int sign) {
      ArrayData values = difference.isNullAt(side) ? null : difference.getArray(side);
      for (int i = 0; values != null && i < values.numElements(); i++) {
        boolean number = value instanceof LongType;
        bag.count(number ? SortedBytes.of(values.getLong(i)) : values.getUTF8String(i).getBytes(), sign);
      }
    }
  }
}
