package io.statecast.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** The state behind {@link RunningTotals}: of each group that has rows its totals. */
final class RunningTotalsProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;

  private final StructType totals;
  private final int[] numbers;
  private final int epoch;
  private final int sequence;
  private final int primaryKey;
  private final int payload;
  private final int letter;
  private transient ValueState<Row> state;

  RunningTotalsProcessor(StructType input, StructType totals) {
    this.totals = totals;
    this.numbers = new int[totals.size()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = input.fieldIndex(totals.apply(i).name());
    }
    this.epoch = input.fieldIndex("epoch");
    this.sequence = input.fieldIndex("sequence");
    this.primaryKey = input.fieldIndex("primary_key");
    this.payload = input.fieldIndex("payload");
    this.letter = input.fieldIndex(LetterKeys.COLUMN);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getValueState("totals", Encoders.row(totals), TTLConfig.NONE());
  }

  @Override
  public Iterator<Row> handleInputRows(String key, Iterator<Row> lines, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return lines.map(line -> record(key, null, new Object[numbers.length], line.get(letter)));
    }
    List<Row> ordered = new ArrayList<>();
    lines.foreach(ordered::add);
    ordered.sort(order());
    Row known = state.get();
    Object[] now = new Object[numbers.length];
    for (int i = 0; i < now.length; i++) {
      now[i] = known == null ? null : known.get(i);
    }
    List<Row> output = new ArrayList<>();
    for (Row line : ordered) {
      for (int i = 0; i < now.length; i++) {
        now[i] = sum(now[i], line.get(numbers[i]));
      }
      if (!line.isNullAt(payload)) {
        output.add(record(key, line.get(payload), now, null));
      }
    }
    if ((Long) now[0] == 0) {
      state.clear();
    } else {
      state.update(RowFactory.create(now.clone()));
    }
    return CollectionConverters.asScala(output.iterator());
  }

  private Comparator<Row> order() {
    return Comparator.<Row>comparingLong(line -> line.getLong(epoch))
        .thenComparingLong(line -> line.getLong(sequence))
        .thenComparing(line -> !line.isNullAt(payload))
        .thenComparing(line -> line.getString(primaryKey));
  }

  private static Object sum(Object total, Object number) {
    if (total == null) {
      return number;
    }
    return number instanceof BigDecimal decimal ? decimal.add((BigDecimal) total) : (Long) total + (Long) number;
  }

  private static Row record(String key, Object payload, Object[] now, Object letter) {
    Object[] values = new Object[now.length + 3];
    values[0] = key;
    values[1] = payload;
    System.arraycopy(now, 0, values, 2, now.length);
    values[now.length + 2] = letter;
    return RowFactory.create(values);
  }
}
