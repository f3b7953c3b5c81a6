package io.statecast.spark.groups;

import io.statecast.spark.state.InternalState;
import io.statecast.spark.state.LetterKeys;
import io.statecast.spark.state.RowReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
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

/**
 * Adds up the lines of a group one after the other, and gives the total at each that asks: keeps the totals of each group
 * that has rows.
 */
public final class RunningTotals extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
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

  RunningTotals(StructType lines, List<String> numbers, GroupPart[] totals) {
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

  /**
   * Gives one line with `key`, `payload` and the totals so far, named like the numbers, for each line that has a
   * `payload`. Each line with one of {@link LetterKeys} in its `key` goes on with its `letter`, and nothing else.
   *
   * <p>The lines of a group that come together are taken in the order of (`epoch`, `sequence`), and of those that one
   * change has made, the ones without a payload first. So a batch that runs again gives the same lines: its totals do
   * not depend on the order in which its shuffle brought them.
   *
   * @param lines with `key` and `primary_key` (text), `epoch` and `sequence` (bigint), none of them null, `payload`
   *     (binary), `letter` (null on each line of a group) and the numbers, which are bigints or decimals
   * @param numbers the names of the columns that are added up; the first counts rows, and a group without any is
   *     forgotten
   */
  public static Dataset<Row> apply(Dataset<Row> lines, List<String> numbers) {
    StructType input = lines.schema();
    GroupPart[] totals = new GroupPart[numbers.size()];
    StructType output = new StructType().add("key", "string", false).add("payload", "binary", true);
    for (int i = 0; i < totals.length; i++) {
      totals[i] = GroupPart.of("sum", input.apply(numbers.get(i)).dataType());
      output = output.add(numbers.get(i), totals[i].shown, true);
    }
    output = output.add(LetterKeys.COLUMN, input.apply(LetterKeys.COLUMN).dataType(), true);
    RunningTotals processor = new RunningTotals(input, List.copyOf(numbers), totals);
    return InternalState.results(lines, "key", processor, TimeMode.None(), output);
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
    Object[] now = known == null ? GroupPart.nothing(totals, 0) : stored.values(known);
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
