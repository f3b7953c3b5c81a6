package io.statecast.spark;

import io.statecast.spark.decode.DecodeChange;
import io.statecast.spark.decode.DecodeRow;
import io.statecast.spark.decode.DescriptorSet;
import io.statecast.spark.decode.JsonTexts;
import io.statecast.spark.decode.MessageType;
import io.statecast.spark.decode.RowFromTexts;
import io.statecast.spark.groups.Contributions;
import io.statecast.spark.groups.Differences;
import io.statecast.spark.groups.GroupPart;
import io.statecast.spark.sink.DeadLetter;
import io.statecast.spark.sink.Encode;
import io.statecast.spark.sink.KafkaPartition;
import io.statecast.spark.tables.Lookup;
import io.statecast.spark.tables.TableRows;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Wraps the functions as Spark's own column functions; called from Python.
 *
 * <p>Spark's generated code calls them with its internal values, which nothing converts. A null argument gives null.
 */
public final class ColumnFunctions {
  private final Object function;
  private final DataType result;
  private final boolean deterministic;

  private ColumnFunctions(Object function, DataType result, boolean deterministic) {
    this.function = function;
    this.result = result;
    this.deterministic = deterministic;
  }

  /** Returns the column that the object's `call` computes from these columns. */
  public Column apply(Seq<Column> columns) {
    List<Expression> arguments = new ArrayList<>();
    CollectionConverters.asJava(columns).forEach(each -> arguments.add(ExpressionUtils.expression(each)));
    return ExpressionUtils.column(
        new Invoke(
            Literal.create(function, new ObjectType(function.getClass())),
            "call",
            result,
            CollectionConverters.asScala(arguments).toSeq(),
            CollectionConverters.asScala(List.<AbstractDataType>of()).toSeq(),
            true,
            true,
            deterministic));
  }

  /**
   * Wraps {@link DecodeChange}, which gives struct(row, payload, problem).
   *
   * <p>It is declared as not deterministic: otherwise the optimizer would copy it into each later use, and decode a
   * record as often as its row is used.
   */
  public static ColumnFunctions decodeChange(DataType result, DescriptorSet descriptors, String message) {
    return new ColumnFunctions(new DecodeChange(descriptors.type(message)), result, false);
  }

  /**
   * Wraps {@link DecodeRow}, which gives struct(row, payload, problem); not deterministic, like {@link #decodeChange}.
   */
  public static ColumnFunctions decodeRow(DataType result, DescriptorSet descriptors, String message) {
    return new ColumnFunctions(new DecodeRow(descriptors.type(message)), result, false);
  }

  /**
   * Wraps {@link RowFromTexts}, which gives struct(row, payload, problem); not deterministic, as {@link #decodeChange}.
   */
  public static ColumnFunctions rowFromTexts(DataType result, DescriptorSet descriptors, String message) {
    return new ColumnFunctions(new RowFromTexts(descriptors.type(message)), result, false);
  }

  /**
   * Wraps {@link Contributions}.
   *
   * @param entry the type of an entry of the result, struct(key, rows, parts…)
   * @param unit the type of a unit
   * @param parts the functions of the {@link GroupPart}s
   */
  public static ColumnFunctions contributions(DataType entry, DataType unit, List<String> parts) {
    GroupPart[] all = GroupPart.all(parts, (StructType) entry);
    return new ColumnFunctions(new Contributions(all, (StructType) unit), DataTypes.createArrayType(entry, false), true);
  }

  /**
   * Wraps {@link Differences}.
   *
   * @param entry the type of an entry of a group, struct(key, rows, parts…)
   * @param parts the functions of the {@link GroupPart}s
   * @param lines a name of {@link Differences.Lines}
   */
  public static ColumnFunctions differences(DataType entry, List<String> parts, String lines) {
    StructType type = (StructType) entry;
    Differences function = new Differences(GroupPart.all(parts, type), type, Differences.Lines.valueOf(lines));
    return new ColumnFunctions(function, DataTypes.createArrayType(function.result(), false), true);
  }

  /** Wraps {@link DeadLetter}, which gives struct(topic, key, value, headers). */
  public static ColumnFunctions deadLetter(
      DataType result, String pipeline, List<String> names, Map<String, Integer> rooms) {
    DeadLetter function = new DeadLetter(pipeline, new ArrayList<>(names), new HashMap<>(rooms));
    return new ColumnFunctions(function, result, true);
  }

  /** Wraps {@link Encode}. */
  public static ColumnFunctions encode(DescriptorSet descriptors, String message) {
    return new ColumnFunctions(new Encode(descriptors.type(message)), DataTypes.BinaryType, true);
  }

  /** Wraps {@link JsonTexts}. */
  public static ColumnFunctions jsonTexts(DataType shape) {
    return new ColumnFunctions(new JsonTexts((StructType) shape), shape, true);
  }

  /** Wraps {@link KafkaPartition}. */
  public static ColumnFunctions kafkaPartition() {
    return new ColumnFunctions(new KafkaPartition(), DataTypes.IntegerType, true);
  }

  /** Wraps {@link Lookup}; not deterministic, because a table changes. `kafka` has the properties of the client. */
  public static ColumnFunctions lookup(
      DataType row, Map<String, String> kafka, String topic, DescriptorSet descriptors, String message) {
    MessageType record = descriptors.type(TableRows.STATE_RECORD);
    Lookup lookup = new Lookup(new HashMap<>(kafka), topic, record, descriptors.type(message));
    return new ColumnFunctions(lookup, row, false);
  }
}
