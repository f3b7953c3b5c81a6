package io.statecast.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.expressions.MutableAggregationBuffer;
import org.apache.spark.sql.expressions.UserDefinedAggregateFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;

/**
 * `collect_set(removed, added) → struct(values, truncated)`: the different values of a group's rows, sorted, of which rows
 * come and go. Both arguments are arrays of texts or of 64-bit integers, or null; the state is a {@link BoundedBag}.
 *
 * <p>It is of Spark's older kind of user-defined aggregates, whose buffer is columns: real-time mode keeps those of the
 * newer kind as objects, and never writes them down.
 */
public final class CollectSet extends UserDefinedAggregateFunction {
  private static final long serialVersionUID = 1L;

  private final DataType value;
  private final int maxValues;
  private final int maxBytes;

  /**
   * @param value that of the values
   * @param maxValues how many values the result has at most
   * @param maxBytes how many bytes they are at most
   */
  CollectSet(DataType value, int maxValues, int maxBytes) {
    this.value = value;
    this.maxValues = maxValues;
    this.maxBytes = maxBytes;
  }

  @Override
  public StructType inputSchema() {
    ArrayType values = DataTypes.createArrayType(value);
    return new StructType().add("removed", values).add("added", values);
  }

  @Override
  public StructType bufferSchema() {
    return new StructType().add("bag", DataTypes.BinaryType);
  }

  @Override
  public DataType dataType() {
    return new StructType().add("values", DataTypes.createArrayType(value, false), false).add("truncated", "boolean", false);
  }

  @Override
  public boolean deterministic() {
    return true;
  }

  @Override
  public void initialize(MutableAggregationBuffer buffer) {
    buffer.update(0, null);
  }

  @Override
  public void update(MutableAggregationBuffer buffer, Row input) {
    if (input.isNullAt(0) && input.isNullAt(1)) {
      return;
    }
    buffer.update(0, counted(buffer.isNullAt(0) ? null : (byte[]) buffer.get(0), input));
  }

  /** The bytes of a bag, null for none, after values have come and gone. */
  byte[] counted(byte[] held, Row input) {
    BoundedBag bag = bag(held);
    count(bag, input, 0, -1);
    count(bag, input, 1, 1);
    return bag.bytes();
  }

  @Override
  public void merge(MutableAggregationBuffer buffer, Row other) {
    if (other.isNullAt(0)) {
      return;
    }
    if (buffer.isNullAt(0)) {
      buffer.update(0, other.get(0));
      return;
    }
    BoundedBag bag = bag((byte[]) buffer.get(0));
    bag.add(BoundedBag.of((byte[]) other.get(0), 2 * maxValues, 2 * maxBytes));
    buffer.update(0, bag.bytes());
  }

  @Override
  public Row evaluate(Row buffer) {
    BoundedBag bag = bag(buffer.isNullAt(0) ? null : (byte[]) buffer.get(0));
    List<byte[]> first = bag.first(maxValues, maxBytes);
    List<Object> values = new ArrayList<>(first.size());
    for (byte[] each : first) {
      values.add(value instanceof LongType ? SortedBytes.toLong(each) : SortedBytes.toText(each));
    }
    return RowFactory.create(values.toArray(), bag.hasMoreThan(first.size()));
  }

  /** Twice the bounds of the result: so it stays complete for a while when values go that it shows. */
  private BoundedBag bag(byte[] held) {
    return BoundedBag.of(held, 2 * maxValues, 2 * maxBytes);
  }

  private void count(BoundedBag bag, Row input, int column, int sign) {
    if (!input.isNullAt(column)) {
      for (Object each : input.getList(column)) {
        bag.count(each instanceof Long number ? SortedBytes.of(number) : SortedBytes.of((String) each), sign);
      }
    }
  }
}
