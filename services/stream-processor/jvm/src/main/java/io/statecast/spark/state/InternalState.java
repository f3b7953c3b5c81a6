package io.statecast.spark.state;

import io.statecast.spark.expressions.InputRow;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithState;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Runs Spark's `transformWithState` for a processor of internal rows: nothing converts the lines on the way in or out,
 * or the values of the state. It uses Spark's private parts, which may change with any release; this is for 4.3.
 *
 * <p>A processor gets the key as UTF8String. It may use a line only until it asks for the next.
 */
public final class InternalState {
  private static final String RESULT = "__result";

  private InternalState() {}

  /**
   * Returns the lines with the columns that the processor adds to each, or replaces.
   *
   * @param key the name of a text column, by which lines are shuffled
   * @param processor gives a {@link #line} for each
   * @param watermark whether a watermark is defined behind the result; it costs a look into the store per line
   * @param columns the columns that the processor fills; each replaces the lines' column of its name
   */
  static Dataset<Row> transform(
      Dataset<Row> lines,
      String key,
      StatefulProcessor<UTF8String, InternalRow, InternalRow> processor,
      boolean watermark,
      StructType columns) {
    StructType input = lines.schema();
    StructType result = new StructType().add("columns", columns, false).add("line", input, false);
    TimeMode time = watermark ? TimeMode.ProcessingTime() : new WithoutTimers();
    Dataset<Row> results = results(lines, key, processor, time, result);
    List<Column> selected = new ArrayList<>();
    for (String name : input.fieldNames()) {
      String side = columns.getFieldIndex(name).isDefined() ? "columns" : "line";
      selected.add(functions.col(side).getField(name).as(name));
    }
    for (String name : columns.fieldNames()) {
      if (input.getFieldIndex(name).isEmpty()) {
        selected.add(functions.col("columns").getField(name).as(name));
      }
    }
    return results.select(selected.toArray(Column[]::new));
  }

  /**
   * Returns the rows that the processor gives.
   *
   * @param key the name of a text column, by which lines are shuffled
   * @param result the type of the rows
   */
  public static Dataset<Row> results(
      Dataset<Row> lines,
      String key,
      StatefulProcessor<UTF8String, InternalRow, InternalRow> processor,
      TimeMode time,
      StructType result) {
    org.apache.spark.sql.classic.Dataset<Row> own = (org.apache.spark.sql.classic.Dataset<Row>) lines;
    return org.apache.spark.sql.classic.Dataset$.MODULE$
        .ofRows(own.sparkSession(), plan(own.queryExecution().analyzed(), key, processor, time, result))
        .select(RESULT + ".*");
  }

  /** Makes a line of the result for a processor of {@link #transform}. */
  static InternalRow line(Object[] columns, InternalRow line) {
    return new GenericInternalRow(new Object[] {new GenericInternalRow(columns), line});
  }

  /** Returns the encoder of a state's values, which are rows of this type. */
  public static Encoder<InternalRow> rows(StructType type) {
    Expression row = new BoundReference(0, type, false);
    List<Expression> fields = new ArrayList<>();
    for (int i = 0; i < type.size(); i++) {
      StructField field = type.apply(i);
      fields.add(Literal.create(field.name(), DataTypes.StringType));
      fields.add(new GetStructField(row, i, Option.apply(field.name())));
    }
    return encoder(Encoders.row(type), new CreateNamedStruct(seq(fields)), new InputRow());
  }

  @SuppressWarnings("unchecked")
  private static LogicalPlan plan(
      LogicalPlan child,
      String key,
      StatefulProcessor<UTF8String, InternalRow, InternalRow> processor,
      TimeMode time,
      StructType result) {
    Attribute by =
        CollectionConverters.asJava(child.output()).stream()
            .filter(each -> each.name().equals(key))
            .findFirst()
            .orElseThrow(() -> new IllegalArgumentException("no column " + key));
    Seq<Attribute> keys = seq(List.of(by));
    Expression text = new BoundReference(0, DataTypes.StringType, true);
    ExpressionEncoder<Object> keyEncoder = (ExpressionEncoder<Object>) (Object) encoder(Encoders.STRING(), text, text);
    return new TransformWithState(
        by,
        new InputRow(),
        keys,
        child.output(),
        (StatefulProcessor<Object, Object, Object>) (Object) processor,
        time,
        OutputMode.Update(),
        keyEncoder,
        new AttributeReference(
            RESULT, result, false, Metadata.empty(), NamedExpression.newExprId(), seq(List.of())),
        child,
        false,
        keys,
        child.output(),
        by,
        new LocalRelation(attributes(keyEncoder.schema()), seq(List.of()), false, Option.empty()));
  }

  @SuppressWarnings("unchecked")
  private static <T> Encoder<T> encoder(Encoder<?> of, Expression serializer, Expression deserializer) {
    return (Encoder<T>) (Object) new ExpressionEncoder<>((AgnosticEncoder<T>) (Object) of, serializer, deserializer);
  }

  private static Seq<Attribute> attributes(StructType type) {
    return seq(new ArrayList<>(CollectionConverters.asJava(DataTypeUtils.toAttributes(type))));
  }

  private static <T> Seq<T> seq(List<T> elements) {
    return CollectionConverters.asScala(elements).toSeq();
  }
}
