package io.statecast.spark;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
 * <p>A row is in one of two places: `entries` holds the {@link RowPosition} and `current` of a row that has entries; `gone`
 * holds the position of one that has none, for a while. A change of a known row costs one read and one write. A truncation
 * of the table takes all rows out of `entries` that it covers, and is itself the deletion of each ({@link Truncations}).
 */
final class PreviousProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;
  private static final String ENTRIES = "entries";
  private static final Seq<Object> NOTHING = CollectionConverters.asScala(List.of()).toSeq();

  /** Where a remembered row has its entries. */
  private static final int CURRENT = 4;

  private final StructType position =
      new StructType()
          .add("epoch", "bigint", false)
          .add("sequence", "bigint", false)
          .add("written", "bigint", false)
          .add("time", "bigint", true);
  private final StructType remembered;
  private final int epoch;
  private final int sequence;
  private final int key;
  private final int time;
  private final int current;
  private final int counted;
  private final Duration forget;
  private final boolean everyChange;
  private transient ValueState<Row> entries;
  private transient ValueState<Row> gone;
  private transient Truncations truncations;

  PreviousProcessor(StructType input, Duration forget, boolean everyChange) {
    this.epoch = input.fieldIndex("epoch");
    this.sequence = input.fieldIndex("sequence");
    this.key = input.fieldIndex("primary_key");
    this.time = input.fieldIndex("time");
    this.current = input.fieldIndex("current");
    this.counted = input.fieldIndex("counted");
    this.remembered = position.add("current", input.apply(current).dataType(), false);
    this.forget = forget;
    this.everyChange = everyChange;
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    entries = getHandle().getValueState(ENTRIES, Encoders.row(remembered), TTLConfig.NONE());
    gone = getHandle().getValueState("gone", Encoders.row(position), new TTLConfig(forget));
    truncations = new Truncations(ENTRIES, entries, gone);
  }

  @Override
  public Iterator<Row> handleInputRows(String key, Iterator<Row> changes, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return changes.map(letter -> RowFactory.create(widened(letter, null, false)));
    }
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
    Outcomes outcomes = new Outcomes();
    List<Row> together = new ArrayList<>(1);
    if (everyChange) {
      changes.foreach(together::add);
    }
    Set<Row> backwards = backwards(together);
    Row change = null;
    int late = 0;
    Iterator<Row> inOrder = everyChange ? ordered(together) : changes;
    while (inOrder.hasNext()) {
      change = inOrder.next();
      Row position = position(change, last);
      boolean applied = position != null;
      Row now = at(applied ? position : own(change), change.getSeq(current));
      if (backwards.contains(change)) {
        outcomes.passed(false, true);
      } else {
        count(change, last, applied, outcomes);
      }
      if (applied && !everyChange) {
        output.subList(late, output.size()).clear();
      }
      if (applied || everyChange) {
        output.add(line(change, now, applied ? standing(everyChange ? last : before) : null, applied));
      } else if (covered && last == before) {
        output.add(late++, line(change, at(before, NOTHING), change.get(current), true));
      } else if (!has(last, change.getSeq(current))) {
        output.add(late++, line(change, at(last, entries(last)), change.get(current), false));
      }
      last = applied ? now : last;
    }
    if (last != before) {
      remember(last, live != null, known != null);
    }
    return CollectionConverters.asScala(counting(output, change, outcomes).iterator());
  }

  /** The position of a row after the change, null when that is not newer than `last`. */
  private Row position(Row change, Row last) {
    return RowPosition.of(change.getLong(epoch), change.getLong(sequence), RowPosition.time(change, time), last);
  }

  /** The position that the change itself says. */
  private Row own(Row change) {
    return RowFactory.create(change.get(epoch), change.get(sequence), change.get(sequence), change.get(time));
  }

  /** Counts the change, unless another line of the same record does. */
  private void count(Row change, Row last, boolean applied, Outcomes outcomes) {
    if (!change.getBoolean(counted)) {
      return;
    }
    if (applied) {
      boolean stood = last != null && !entries(last).isEmpty();
      outcomes.applied(PartitionKeys.isOne(change.getString(key)) || stood || !change.getSeq(current).isEmpty());
    } else {
      boolean same =
          change.getLong(epoch) == last.getLong(RowPosition.EPOCH)
              && change.getLong(sequence) == last.getLong(RowPosition.SEQUENCE);
      outcomes.passed(
          same, RowPosition.isNewer(RowPosition.time(change, time), RowPosition.time(last, RowPosition.TIME)));
    }
  }

  /** The lines, whose first tells the outcomes; where no line goes out, one that does nothing else. */
  private List<Row> counting(List<Row> lines, Row change, Outcomes outcomes) {
    if (!outcomes.any()) {
      return lines;
    }
    if (lines.isEmpty()) {
      lines.add(line(change, at(own(change), NOTHING), null, false));
    }
    lines.set(0, outcomes.on(lines.get(0)));
    return lines;
  }

  /**
   * The changes that came together as they stand in the log, so that a batch which runs again gives the same.
   *
   * <p>A row that a snapshot has read stands before all changes that came after it: those of a transaction that was open
   * then have lower places, and the row as it left it must win.
   */
  private Iterator<Row> ordered(List<Row> changes) {
    Map<Row, Row> after = firstAfterReads(changes);
    Comparator<Row> order = order();
    Comparator<Row> byPlace =
        (one, other) -> order.compare(after.getOrDefault(one, one), after.getOrDefault(other, other));
    changes.sort(byPlace.thenComparing(change -> !after.containsKey(change)));
    return CollectionConverters.asScala(changes.iterator());
  }

  /** By row that a snapshot has read, the first in the log of the changes that came after it, if its place is lower. */
  private Map<Row, Row> firstAfterReads(List<Row> changes) {
    Map<Row, Row> after = new IdentityHashMap<>();
    Comparator<Row> order = order();
    Row first = null;
    for (int i = changes.size() - 1; i >= 0; i--) {
      Row change = changes.get(i);
      boolean isLower = first == null || order.compare(change, first) < 0;
      if (change.getLong(sequence) >= 0) {
        first = isLower ? change : first;
      } else if (!isLower) {
        after.put(change, first);
      }
    }
    return after;
  }

  private Comparator<Row> order() {
    return Comparator.<Row>comparingLong(change -> change.getLong(epoch))
        .thenComparingLong(change -> Math.abs(change.getLong(sequence)))
        .thenComparing(change -> change.getLong(sequence) < 0);
  }

  /** The changes that came after one with a higher place, and are newer by their time: to sort them hides it. */
  private Set<Row> backwards(List<Row> changes) {
    if (changes.size() < 2) {
      return Set.of();
    }
    Set<Row> backwards = Collections.newSetFromMap(new IdentityHashMap<>());
    Comparator<Row> order = order();
    Row highest = null;
    for (Row change : changes) {
      int place = highest == null ? 1 : order.compare(change, highest);
      if (place < 0 && RowPosition.isNewer(RowPosition.time(change, time), RowPosition.time(highest, time))) {
        backwards.add(change);
      }
      // A change after a row that was read may be of a transaction that was open then.
      highest = place > 0 && change.getLong(sequence) >= 0 ? change : highest;
    }
    return backwards;
  }

  /** One line for the truncation itself and one per row that leaves, each made when it is asked for. */
  private Iterator<Row> truncate(Iterator<Row> changes) {
    Row newest = null;
    Row last = truncations.last();
    Row change = null;
    Outcomes outcomes = new Outcomes();
    while (changes.hasNext()) {
      change = changes.next();
      Row position = position(change, last);
      count(change, last, position != null, outcomes);
      if (position != null) {
        newest = change;
        last = position;
      }
    }
    if (newest == null) {
      return CollectionConverters.asScala(counting(new ArrayList<>(1), change, outcomes).iterator());
    }
    Row truncation = newest;
    Row place = last;
    List<Row> itself = new ArrayList<>(List.of(line(truncation, at(place, NOTHING), null, true)));
    java.util.Iterator<Row> rows =
        truncations.truncate(
            place,
            (key, left) -> line(truncation, at(RowPosition.after(left, place), NOTHING), standing(left), true));
    return CollectionConverters.asScala(counting(itself, truncation, outcomes).iterator())
        .concat(() -> CollectionConverters.asScala(rows));
  }

  /** What is remembered of a row with these entries at the position. */
  private static Row at(Row position, Seq<Object> entries) {
    Object[] values = new Object[CURRENT + 1];
    for (int i = 0; i < CURRENT; i++) {
      values[i] = position.get(i);
    }
    values[CURRENT] = entries;
    return RowFactory.create(values);
  }

  /** Whether the row has all the entries after its last change. */
  private static boolean has(Row last, Seq<Object> entries) {
    return CollectionConverters.asJava(entries(last)).containsAll(CollectionConverters.asJava(entries));
  }

  private static Seq<Object> entries(Row last) {
    return last.size() > CURRENT ? last.getSeq(CURRENT) : NOTHING;
  }

  private static Object standing(Row last) {
    return last == null ? null : entries(last);
  }

  private void remember(Row last, boolean wasLive, boolean wasKnown) {
    if (entries(last).isEmpty()) {
      if (wasLive) {
        entries.clear();
      }
      gone.update(RowPosition.alone(last));
      return;
    }
    if (wasKnown && !wasLive) {
      gone.clear();
    }
    entries.update(last);
  }

  /** The change as it is passed on, which counts nothing; `now` is what is remembered of its row. */
  private Row line(Row change, Row now, Object previous, boolean applied) {
    Object[] values = widened(change, previous, applied);
    values[epoch] = now.get(RowPosition.EPOCH);
    values[sequence] = now.get(RowPosition.WRITTEN);
    values[current] = now.get(CURRENT);
    return RowFactory.create(values);
  }

  private static Object[] widened(Row change, Object previous, boolean applied) {
    Object[] values = RowValues.of(change, 3);
    values[change.size()] = previous;
    values[change.size() + 1] = applied;
    return values;
  }
}
