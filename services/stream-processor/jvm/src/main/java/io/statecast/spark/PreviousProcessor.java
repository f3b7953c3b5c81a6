package io.statecast.spark;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.TaskContext;
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
 * (epoch, sequence) of one that has none, for a while. A change of a known row costs one read and one write. A truncation
 * of the table takes all rows out of `entries` that it covers, and is itself the deletion of each ({@link Truncations}).
 */
final class PreviousProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;
  private static final String ENTRIES = "entries";
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
  private transient Truncations truncations;

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
    entries = getHandle().getValueState(ENTRIES, Encoders.row(remembered), TTLConfig.NONE());
    gone = getHandle().getValueState("gone", Encoders.row(place), new TTLConfig(forget));
    truncations = new Truncations(ENTRIES, entries, gone);
  }

  @Override
  public Iterator<Row> handleInputRows(String key, Iterator<Row> changes, TimerValues timers) {
    if (PartitionKeys.isOne(key)) {
      PartitionKeys.check(key, TaskContext.getPartitionId(), TaskContext.get().numPartitions());
      return truncate(changes);
    }
    Row live = entries.get();
    Row known = live == null ? gone.get() : live;
    boolean covered = truncations.cover(known);
    Row before = covered ? truncations.last() : known;
    Row last = before;
    List<Row> output = new ArrayList<>(1);
    int late = 0;
    Iterator<Row> inOrder = everyChange ? ordered(changes) : changes;
    while (inOrder.hasNext()) {
      Row change = inOrder.next();
      long placed = RowPosition.of(change.getLong(epoch), change.getLong(sequence), last);
      boolean applied = placed != RowPosition.NOT_NEWER;
      Row now = RowFactory.create(change.get(epoch), applied ? placed : change.get(sequence), change.get(current));
      if (applied && !everyChange) {
        output.subList(late, output.size()).clear();
      }
      if (applied || everyChange) {
        output.add(line(change, now, applied ? standing(everyChange ? last : before) : null, applied));
      } else if (covered && last == before) {
        output.add(late++, line(change, nothingAt(before), change.get(current), true));
      } else if (!has(last, change.getSeq(current))) {
        output.add(late++, line(change, place(last), change.get(current), false));
      }
      last = applied ? now : last;
    }
    if (last != before) {
      remember(last, live != null, known != null);
    }
    return CollectionConverters.asScala(output.iterator());
  }

  /** The changes that came together as they stand in the log, so that a batch which runs again gives the same. */
  private Iterator<Row> ordered(Iterator<Row> changes) {
    List<Row> ordered = new ArrayList<>(1);
    changes.foreach(ordered::add);
    ordered.sort(
        Comparator.<Row>comparingLong(change -> change.getLong(epoch))
            .thenComparingLong(change -> Math.abs(change.getLong(sequence)))
            .thenComparing(change -> change.getLong(sequence) < 0));
    return CollectionConverters.asScala(ordered.iterator());
  }

  /** One line for the truncation itself and one per row that leaves, each made when it is asked for. */
  private Iterator<Row> truncate(Iterator<Row> changes) {
    Row newest = null;
    Row place = truncations.last();
    while (changes.hasNext()) {
      Row change = changes.next();
      if (RowPosition.of(change.getLong(epoch), change.getLong(sequence), place) != RowPosition.NOT_NEWER) {
        newest = change;
        place = RowFactory.create(change.get(epoch), change.get(sequence));
      }
    }
    if (newest == null) {
      return CollectionConverters.asScala(Collections.<Row>emptyIterator());
    }
    Row truncation = newest;
    Row nothing = nothingAt(place);
    Iterator<Row> itself = CollectionConverters.asScala(List.of(line(truncation, nothing, null, true)).iterator());
    java.util.Iterator<Row> rows =
        truncations.truncate(place, (key, left) -> line(truncation, nothing, standing(left), true));
    return itself.concat(() -> CollectionConverters.asScala(rows));
  }

  private static Row nothingAt(Row place) {
    return RowFactory.create(place.get(0), place.get(1), NOTHING);
  }

  /** Whether the row has all the entries after its last change. */
  private static boolean has(Row last, Seq<Object> entries) {
    return CollectionConverters.asJava(entries(last)).containsAll(CollectionConverters.asJava(entries));
  }

  private static Row place(Row last) {
    return RowFactory.create(last.get(0), last.get(1), entries(last));
  }

  private static Seq<Object> entries(Row last) {
    return last.size() > 2 ? last.getSeq(2) : NOTHING;
  }

  private static Object standing(Row last) {
    return last == null ? null : entries(last);
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

  /** The change as it is passed on; `now` is (epoch, sequence, current) of its row. */
  private Row line(Row change, Row now, Object previous, boolean applied) {
    Object[] values = new Object[change.size() + 2];
    for (int i = 0; i < change.size(); i++) {
      values[i] = change.get(i);
    }
    values[epoch] = now.get(0);
    values[sequence] = now.get(1);
    values[current] = now.get(2);
    values[change.size()] = previous;
    values[change.size() + 1] = applied;
    return RowFactory.create(values);
  }
}
