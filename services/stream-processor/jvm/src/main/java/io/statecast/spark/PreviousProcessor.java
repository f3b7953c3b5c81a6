package io.statecast.spark;

import java.time.Duration;
import java.util.ArrayList;
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
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The state behind {@link Previous}: of each row its last applied change.
 *
 * <p>A row is in one of two places: `entries` holds (epoch, sequence, current) of a row that has entries; `gone` holds
 * (epoch, sequence) of one that has none, for a while. A change of a known row costs one read and one write.
 */
final class PreviousProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;
  private static final Seq<Object> NOTHING = CollectionConverters.asScala(List.of()).toSeq();

  private final StructType place = new StructType().add("epoch", "bigint", false).add("sequence", "bigint", false);
  private final StructType remembered;
  private final int epoch;
  private final int sequence;
  private final int current;
  private final Duration forget;
  private final boolean everyChange;
  private transient ValueState<Row> entries;
  private transient ValueState<Row> gone;

  PreviousProcessor(StructType input, Duration forget, boolean everyChange) {
    this.epoch = input.fieldIndex("epoch");
    this.sequence = input.fieldIndex("sequence");
    this.current = input.fieldIndex("current");
    this.remembered = place.add("current", input.apply(current).dataType(), false);
    this.forget = forget;
    this.everyChange = everyChange;
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    entries = getHandle().getValueState("entries", Encoders.row(remembered), TTLConfig.NONE());
    gone = getHandle().getValueState("gone", Encoders.row(place), new TTLConfig(forget));
  }

  @Override
  public Iterator<Row> handleInputRows(String key, Iterator<Row> changes, TimerValues timers) {
    Row live = entries.get();
    Row before = live == null ? gone.get() : live;
    Row last = before;
    List<Row> output = new ArrayList<>(1);
    while (changes.hasNext()) {
      Row change = changes.next();
      long placed = RowPosition.of(change.getLong(epoch), change.getLong(sequence), last);
      boolean applied = placed != RowPosition.NOT_NEWER;
      if (applied && !everyChange) {
        output.clear();
      }
      if (applied || everyChange) {
        long shown = applied ? placed : change.getLong(sequence);
        output.add(extended(change, shown, applied ? standing(everyChange ? last : before) : null, applied));
      }
      last = applied ? RowFactory.create(change.get(epoch), placed, change.get(current)) : last;
    }
    if (last != before) {
      remember(last, live != null, before != null);
    }
    return CollectionConverters.asScala(output.iterator());
  }

  private static Object standing(Row last) {
    return last == null ? null : last.size() > 2 ? last.get(2) : NOTHING;
  }

  private void remember(Row last, boolean wasLive, boolean wasKnown) {
    if (((Seq<?>) last.get(2)).isEmpty()) {
      if (wasLive) {
        entries.clear();
      }
      gone.update(RowFactory.create(last.get(0), last.get(1)));
      return;
    }
    if (wasKnown && !wasLive) {
      gone.clear();
    }
    entries.update(last);
  }

  private Row extended(Row change, long placed, Object previous, boolean applied) {
    Object[] values = new Object[change.size() + 2];
    for (int i = 0; i < change.size(); i++) {
      values[i] = change.get(i);
    }
    values[sequence] = placed;
    values[change.size()] = previous;
    values[change.size() + 1] = applied;
    return RowFactory.create(values);
  }
}
