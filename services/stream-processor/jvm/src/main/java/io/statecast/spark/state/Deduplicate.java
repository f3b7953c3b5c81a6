package io.statecast.spark.state;

import java.time.Duration;
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

/** Finds events that were sent more than once: keeps the time of each identity's first event, for a while. */
public final class Deduplicate extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
  private static final long serialVersionUID = 1L;
  private static final StructType SEEN = new StructType().add("time", "bigint", true);

  private final int sequence;
  private final int time;
  private final long within;
  private transient ValueState<InternalRow> seen;

  Deduplicate(StructType input, long within) {
    this.sequence = input.fieldIndex("sequence");
    this.time = input.fieldIndex("time");
    this.within = within;
  }

  /**
   * Adds `first`, false for an event that repeats an earlier one, and `outcomes`, which counts both; null on a line
   * that counts none. A line with one of {@link LetterKeys} in its `identity` is not an event: it goes on as a first
   * one, counts none, and leaves nothing in the state.
   *
   * <p>Of the events of an identity that come together, the one with the lowest `sequence` is the first. An identity is
   * remembered for twice `within`, by the clock, after its first event was read. So repetitions that were sent in this
   * time are detected even if the reader was away for as long.
   *
   * @param events with `identity` (text, not null), `time` (bigint in microseconds, null if unknown) and `sequence`
   *     (bigint, not null)
   * @param within in microseconds: an event repeats the first one of its identity if it is less than that apart from it
   * @param watermark as of {@link InternalState#transform}
   */
  public static Dataset<Row> apply(Dataset<Row> events, long within, boolean watermark) {
    StructType input = events.schema();
    StructType columns = new StructType().add("first", "boolean", false).add(Outcomes.COLUMN, Outcomes.TYPE, true);
    Deduplicate processor = new Deduplicate(input, within);
    return InternalState.transform(events, "identity", processor, watermark, columns);
  }

  @Override
  public void init(OutputMode mode, TimeMode timeMode) {
    Duration forget = Duration.ofMillis(Math.max(1, within / 500));
    seen = getHandle().getValueState("seen", InternalState.rows(SEEN), new TTLConfig(forget));
  }

  @Override
  public Iterator<InternalRow> handleInputRows(UTF8String identity, Iterator<InternalRow> events, TimerValues timers) {
    if (LetterKeys.isOne(identity)) {
      return events.map(letter -> line(letter, true, null));
    }
    List<InternalRow> ordered = new ArrayList<>(1);
    events.foreach(event -> ordered.add(event.copy()));
    ordered.sort(Comparator.comparingLong(event -> event.getLong(sequence)));
    InternalRow known = seen.get();
    InternalRow last = known;
    Outcomes outcomes = new Outcomes();
    List<InternalRow> output = new ArrayList<>(ordered.size());
    for (InternalRow event : ordered) {
      boolean first = last == null || isApart(last, event);
      if (first) {
        outcomes.applied(true);
        last = new GenericInternalRow(new Object[] {event.isNullAt(time) ? null : (Long) event.getLong(time)});
      } else {
        outcomes.passed(true, false);
      }
      boolean counts = output.size() == ordered.size() - 1;
      output.add(line(event, first, counts ? outcomes : null));
    }
    if (last != known) {
      seen.update(last);
    }
    return CollectionConverters.asScala(output.iterator());
  }

  private boolean isApart(InternalRow first, InternalRow event) {
    return !first.isNullAt(0) && !event.isNullAt(time) && Math.abs(event.getLong(time) - first.getLong(0)) >= within;
  }

  private static InternalRow line(InternalRow event, boolean first, Outcomes outcomes) {
    return InternalState.line(new Object[] {first, outcomes == null ? null : outcomes.row()}, event);
  }
}
