package io.statecast.spark;

import static org.apache.spark.sql.functions.udf;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** The functions as Spark's own column functions; the door for Python. */
public final class ColumnFunctions {
  private ColumnFunctions() {}

  /**
   * {@link DecodeChange}, whose result is struct(row, payload, problem).
   *
   * <p>Declared as not deterministic: otherwise the optimizer copies it into each later use, and a record is decoded as
   * often as its row is looked at.
   */
  public static UserDefinedFunction decodeChange(DataType result) {
    return udf(new DecodeChange(), result).asNondeterministic();
  }

  /** {@link DecodeRow}, whose result is struct(row, payload, problem); not deterministic, as {@link #decodeChange}. */
  public static UserDefinedFunction decodeRow(DataType result) {
    return udf(new DecodeRow(), result).asNondeterministic();
  }

  /** {@link RowFromTexts}, whose result is struct(row, payload, problem); not deterministic, as {@link #decodeChange}. */
  public static UserDefinedFunction rowFromTexts(DataType result) {
    return udf(new RowFromTexts(), result).asNondeterministic();
  }

  /** {@link CollectSet}, of texts or 64-bit integers. */
  public static CollectSet collectSet(DataType value, int maxValues, int maxBytes) {
    return new CollectSet(value, maxValues, maxBytes);
  }

  /** {@link Encode}. */
  public static UserDefinedFunction encode() {
    return udf(new Encode(), DataTypes.BinaryType);
  }

  /** {@link KafkaPartition}. */
  public static UserDefinedFunction kafkaPartition() {
    return udf(new KafkaPartition(), DataTypes.IntegerType);
  }

  /** {@link Lookup}; `kafka` are the clients' properties; not deterministic, since a table changes. */
  public static UserDefinedFunction lookup(
      DataType row, Map<String, String> kafka, String topic, String message) {
    return udf(new Lookup(new HashMap<>(kafka), topic, message), row).asNondeterministic();
  }
}
