package io.statecast.spark;

import java.time.Duration;
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

/** The state behind {@link Deduplicate}: of each identity the time of its first event, for a while. */
final class DeduplicateProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;
  private static final StructType SEEN = new StructType().add("time", "bigint", true);

  private final int sequence;
  private final int time;
  private final long within;
  private transient ValueState<Row> seen;

  DeduplicateProcessor(StructType input, long within) {
    this.sequence = input.fieldIndex("sequence");
    this.time = input.fieldIndex("time");
    this.within = within;
  }

  @Override
  public void init(OutputMode mode, TimeMode timeMode) {
    Duration forget = Duration.ofMillis(Math.max(1, within / 500));
    seen = getHandle().getValueState("seen", Encoders.row(SEEN), new TTLConfig(forget));
  }

  @Override
  public Iterator<Row> handleInputRows(String identity, Iterator<Row> events, TimerValues timers) {
    List<Row> ordered = new ArrayList<>(1);
    events.foreach(ordered::add);
    if (LetterKeys.isOne(identity)) {
      return CollectionConverters.asScala(ordered.stream().map(letter -> line(letter, true)).iterator());
    }
    ordered.sort(Comparator.comparingLong(event -> event.getLong(sequence)));
    Row known = seen.get();
    Row last = known;
    Outcomes outcomes = new Outcomes();
    List<Row> output = new ArrayList<>(ordered.size());
    for (Row event : ordered) {
      boolean first = last == null || isApart(last, event);
      if (first) {
        outcomes.applied(true);
        last = RowFactory.create(event.get(time));
      } else {
        outcomes.passed(true, false);
      }
      output.add(line(event, first));
    }
    if (last != known) {
      seen.update(last);
    }
    output.set(output.size() - 1, outcomes.on(output.get(output.size() - 1)));
    return CollectionConverters.asScala(output.iterator());
  }

  private boolean isApart(Row first, Row event) {
    return !first.isNullAt(0) && !event.isNullAt(time) && Math.abs(event.getLong(time) - first.getLong(0)) >= within;
  }

  private static Row line(Row event, boolean first) {
    Object[] values = RowValues.of(event, 2);
    values[event.size()] = first;
    return RowFactory.create(values);
  }
}
