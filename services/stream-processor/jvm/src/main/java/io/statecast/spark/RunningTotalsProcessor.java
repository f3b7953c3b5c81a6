package io.statecast.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** Keeps the state of {@link RunningTotals}: the totals of each group that has rows. */
final class RunningTotalsProcessor extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
  private static final long serialVersionUID = 1L;

  private final RowReader lines;
  private final GroupPart[] totals;
  private final StructType held;
  private final RowReader stored;
  private final int[] numbers;
  private final int epoch;
  private final int sequence;
  private final int primaryKey;
  private final int payload;
  private final int letter;
  private transient ValueState<InternalRow> state;

  RunningTotalsProcessor(StructType lines, List<String> numbers, GroupPart[] totals) {
    StructType sums = new StructType();
    for (int i = 0; i < totals.length; i++) {
      sums = sums.add(numbers.get(i), totals[i].held, true);
    }
    this.lines = new RowReader(lines);
    this.totals = totals;
    this.held = sums;
    this.stored = new RowReader(sums);
    this.numbers = numbers.stream().mapToInt(lines::fieldIndex).toArray();
    this.epoch = lines.fieldIndex("epoch");
    this.sequence = lines.fieldIndex("sequence");
    this.primaryKey = lines.fieldIndex("primary_key");
    this.payload = lines.fieldIndex("payload");
    this.letter = lines.fieldIndex(LetterKeys.COLUMN);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getValueState("totals", InternalState.rows(held), TTLConfig.NONE());
  }

  @Override
  public Iterator<InternalRow> handleInputRows(UTF8String key, Iterator<InternalRow> changes, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return changes.map(line -> record(key, null, new Object[numbers.length], lines.value(line, letter)));
    }
    List<InternalRow> ordered = new ArrayList<>();
    changes.foreach(change -> ordered.add(change.copy()));
    ordered.sort(order());
    InternalRow known = state.get();
    Object[] now = known == null ? nothing() : stored.values(known);
    List<InternalRow> output = new ArrayList<>();
    for (InternalRow line : ordered) {
      for (int i = 0; i < now.length; i++) {
        now[i] = totals[i].fold(now[i], lines.value(line, numbers[i]));
      }
      if (!line.isNullAt(payload)) {
        output.add(record(key, line.getBinary(payload), now, null));
      }
    }
    if ((Long) now[0] == 0) {
      state.clear();
    } else {
      state.update(new GenericInternalRow(now));
    }
    return CollectionConverters.asScala(output.iterator());
  }

  private Object[] nothing() {
    Object[] now = new Object[totals.length];
    for (int i = 0; i < now.length; i++) {
      now[i] = totals[i].nothing();
    }
    return now;
  }

  private Comparator<InternalRow> order() {
    return Comparator.<InternalRow>comparingLong(line -> line.getLong(epoch))
        .thenComparingLong(line -> line.getLong(sequence))
        .thenComparing(line -> !line.isNullAt(payload))
        .thenComparing(line -> line.getUTF8String(primaryKey));
  }

  private static InternalRow record(UTF8String key, byte[] payload, Object[] now, Object letter) {
    Object[] values = new Object[now.length + 3];
    values[0] = key;
    values[1] = payload;
    System.arraycopy(now, 0, values, 2, now.length);
    values[now.length + 2] = letter;
    return new GenericInternalRow(values);
  }
}
