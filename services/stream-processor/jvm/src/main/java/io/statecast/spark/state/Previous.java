package io.statecast.spark.state;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Remembers the last applied change of each row, and passes its entries to the row's next change.
 *
 * <p>A row is in one of two places: `entries` holds the {@link Remembered} of a row that has entries; `gone` that of a
 * row that has none, for a while. A change of a known row costs one read and one write. A truncation of the table
 * removes all rows that it covers from `entries`, and is itself the deletion of each ({@link Truncations}).
 */
public final class Previous extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
  private static final long serialVersionUID = 1L;
  private static final String ENTRIES = "entries";

  /** The indices of the columns that a line gets: see {@link #columns}. */
  private static final int EPOCH = 0;

  private static final int SEQUENCE = 1;
  private static final int CURRENT = 2;
  private static final int OUTCOMES = 5;

  private final ArrayType type;
  private final int epoch;
  private final int sequence;
  private final int key;
  private final int time;
  private final int current;
  private final int counted;
  private final Duration forget;
  private final boolean everyChange;
  private transient ValueState<InternalRow> entries;
  private transient ValueState<InternalRow> gone;
  private transient Truncations truncations;

  Previous(StructType input, Duration forget, boolean everyChange) {
    this.epoch = input.fieldIndex("epoch");
    this.sequence = input.fieldIndex("sequence");
    this.key = input.fieldIndex("primary_key");
    this.time = input.fieldIndex("time");
    this.current = input.fieldIndex("current");
    this.counted = input.fieldIndex("counted");
    this.type = (ArrayType) input.apply(current).dataType();
    this.forget = forget;
    this.everyChange = everyChange;
  }

  /**
   * Adds `previous`, the entries that the row had before; `applied`, whether the change is newer than all before it;
   * and `outcomes`, the number of changes with `counted` by outcome, null on a line that counts none.
   *
   * <p>If no other line would carry the outcomes, one goes on with nothing in `current` and `applied` false.
   *
   * <p>It works alike in batches, micro-batches and real-time mode. Columns that are not named here go through
   * untouched.
   *
   * <p>A truncation of the table is a line for each of the {@link #partitionKeys}: each row that it covers goes on as
   * if that line had deleted it. An earlier change that comes later goes on with nothing in `current`, at the
   * truncation's place and with its own entries as `previous`, because these may have been written before a crash; with
   * `everyChange`, it is one that is not newer.
   *
   * <p>A line with one of {@link LetterKeys} in its `primary_key` is not a change: it goes on as it is, with `applied`
   * false, and may have nulls wherever a change has none.
   *
   * @param changes with `primary_key` (text), `epoch` and `sequence` (bigint, not null), `time` (bigint, which shows
   *     that a change at a lower place is newer all the same; null if unknown), `counted` (boolean, not null: whether
   *     the line stands for its record) and `current` (an array, not null: the entries that the row has now)
   * @param forgetSeconds how long a row without entries is remembered; after that, an older change of it would count
   *     again
   * @param everyChange whether changes that are not newer go on too, with `applied` false and `previous` null.
   *     Otherwise only the newest of a row's changes that come together goes on, and each change that is not newer and
   *     has entries that the row does not have now: with `applied` false, at the row's place and with the row's entries
   *     in `current`, and its own entries as `previous`, because these may have been written before a crash
   * @param watermark as of {@link InternalState#transform}
   */
  public static Dataset<Row> apply(Dataset<Row> changes, long forgetSeconds, boolean everyChange, boolean watermark) {
    StructType input = changes.schema();
    Previous processor = new Previous(input, Duration.ofSeconds(forgetSeconds), everyChange);
    return InternalState.transform(changes, "primary_key", processor, watermark, columns(input));
  }

  /** Returns the `primary_key`s of a line for all of so many partitions of the state, one for each. */
  public static String[] partitionKeys(int partitions) {
    return PartitionKeys.all(partitions);
  }

  /** Returns the columns that each line gets; the first three replace its own. */
  static StructType columns(StructType input) {
    return new StructType()
        .add(input.apply("epoch"))
        .add(input.apply("sequence"))
        .add(input.apply("current"))
        .add("previous", input.apply("current").dataType(), true)
        .add("applied", "boolean", false)
        .add(Outcomes.COLUMN, Outcomes.TYPE, true);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    entries = getHandle().getValueState(ENTRIES, InternalState.rows(Remembered.withEntries(type)), TTLConfig.NONE());
    gone = getHandle().getValueState("gone", InternalState.rows(Remembered.PLACE), new TTLConfig(forget));
    truncations = new Truncations(ENTRIES, entries, gone);
  }

  @Override
  public Iterator<InternalRow> handleInputRows(UTF8String key, Iterator<InternalRow> changes, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return changes.map(this::unchanged);
    }
    if (PartitionKeys.isOne(key)) {
      PartitionKeys.check(key.toString(), TaskContext.getPartitionId(), TaskContext.get().numPartitions());
      return truncate(changes);
    }
    Remembered live = Remembered.in(entries.get());
    Remembered known = live == null ? Remembered.in(gone.get()) : live;
    boolean covered = truncations.cover(known);
    Remembered before = covered ? Remembered.gone(truncations.last()) : known;
    Remembered last = before;
    List<InternalRow> output = new ArrayList<>(1);
    Outcomes outcomes = new Outcomes();
    List<InternalRow> together = new ArrayList<>(1);
    if (everyChange) {
      changes.foreach(change -> together.add(change.copy()));
    }
    Set<InternalRow> backwards = backwards(together);
    InternalRow change = null;
    int late = 0;
    Iterator<InternalRow> inOrder = everyChange ? ordered(together) : changes.map(InternalRow::copy);
    while (inOrder.hasNext()) {
      change = inOrder.next();
      RowPosition place = position(change, last);
      boolean applied = place != null;
      Remembered now = new Remembered(applied ? place : own(change), change.getArray(current));
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
        Remembered left = Remembered.gone(before.place());
        output.add(late++, line(change, left, change.getArray(current), true));
      } else if (!has(last, change.getArray(current))) {
        output.add(late++, line(change, last, change.getArray(current), false));
      }
      last = applied ? now : last;
    }
    if (last != before) {
      remember(last, live != null, known != null);
    }
    return CollectionConverters.asScala(counting(output, change, outcomes).iterator());
  }

  /** Returns the position of a row after the change; null if the change is not newer than `last`. */
  private RowPosition position(InternalRow change, Remembered last) {
    return RowPosition.of(
        change.getLong(epoch), change.getLong(sequence), time(change), last == null ? null : last.place());
  }

  /** Returns the position of the change itself. */
  private RowPosition own(InternalRow change) {
    return RowPosition.own(change.getLong(epoch), change.getLong(sequence), time(change));
  }

  private Long time(InternalRow change) {
    return change.isNullAt(time) ? null : (Long) change.getLong(time);
  }

  /** Counts the change, unless another line of the same record does. */
  private void count(InternalRow change, Remembered last, boolean applied, Outcomes outcomes) {
    if (!change.getBoolean(counted)) {
      return;
    }
    if (applied) {
      boolean stood = last != null && !last.isGone();
      boolean stands = change.getArray(current).numElements() > 0;
      outcomes.applied(stood || stands || PartitionKeys.isOne(change.getUTF8String(key)));
    } else {
      boolean same =
          change.getLong(epoch) == last.place().epoch() && change.getLong(sequence) == last.place().sequence();
      outcomes.passed(same, RowPosition.isNewer(time(change), last.place().time()));
    }
  }

  /** Adds the outcomes to the first line; if there is none, adds one that does nothing else. */
  private List<InternalRow> counting(List<InternalRow> lines, InternalRow change, Outcomes outcomes) {
    if (!outcomes.any()) {
      return lines;
    }
    if (lines.isEmpty()) {
      lines.add(line(change, Remembered.gone(own(change)), null, false));
    }
    lines.get(0).getStruct(0, OUTCOMES + 1).update(OUTCOMES, outcomes.row());
    return lines;
  }

  /**
   * Returns the changes that came together in the order of the log, so that a batch that runs again gives the same.
   *
   * <p>A row that a snapshot has read comes before all changes that came after it: those of a transaction that was open
   * then have lower places, and the row as the transaction left it must win.
   */
  private Iterator<InternalRow> ordered(List<InternalRow> changes) {
    if (changes.size() > 1) {
      Map<InternalRow, InternalRow> after = firstAfterReads(changes);
      Comparator<InternalRow> order = order();
      Comparator<InternalRow> byPlace =
          (one, other) -> order.compare(after.getOrDefault(one, one), after.getOrDefault(other, other));
      changes.sort(byPlace.thenComparing(change -> !after.containsKey(change)));
    }
    return CollectionConverters.asScala(changes.iterator());
  }

  /** Maps each row that a snapshot has read to the first in the log of the later changes, if its place is lower. */
  private Map<InternalRow, InternalRow> firstAfterReads(List<InternalRow> changes) {
    Map<InternalRow, InternalRow> after = new IdentityHashMap<>();
    Comparator<InternalRow> order = order();
    InternalRow first = null;
    for (int i = changes.size() - 1; i >= 0; i--) {
      InternalRow change = changes.get(i);
      boolean isLower = first == null || order.compare(change, first) < 0;
      if (change.getLong(sequence) >= 0) {
        first = isLower ? change : first;
      } else if (!isLower) {
        after.put(change, first);
      }
    }
    return after;
  }

  private Comparator<InternalRow> order() {
    return Comparator.<InternalRow>comparingLong(change -> change.getLong(epoch))
        .thenComparingLong(change -> Math.abs(change.getLong(sequence)))
        .thenComparing(change -> change.getLong(sequence) < 0);
  }

  /** Returns the changes that came after one with a higher place but are newer by their time, which sorting hides. */
  private Set<InternalRow> backwards(List<InternalRow> changes) {
    if (changes.size() < 2) {
      return Set.of();
    }
    Set<InternalRow> backwards = Collections.newSetFromMap(new IdentityHashMap<>());
    Comparator<InternalRow> order = order();
    InternalRow highest = null;
    for (InternalRow change : changes) {
      int place = highest == null ? 1 : order.compare(change, highest);
      if (place < 0 && RowPosition.isNewer(time(change), time(highest))) {
        backwards.add(change);
      }
      // A change after a row that was read may belong to a transaction that was open then.
      highest = place > 0 && change.getLong(sequence) >= 0 ? change : highest;
    }
    return backwards;
  }

  /** Returns a line for the truncation itself and one for each row that leaves, each made when it is asked for. */
  private Iterator<InternalRow> truncate(Iterator<InternalRow> changes) {
    InternalRow newest = null;
    RowPosition last = truncations.last();
    InternalRow change = null;
    Outcomes outcomes = new Outcomes();
    while (changes.hasNext()) {
      change = changes.next().copy();
      Remembered known = last == null ? null : Remembered.gone(last);
      RowPosition place = position(change, known);
      count(change, known, place != null, outcomes);
      if (place != null) {
        newest = change;
        last = place;
      }
    }
    if (newest == null) {
      return CollectionConverters.asScala(counting(new ArrayList<>(1), change, outcomes).iterator());
    }
    InternalRow truncation = newest;
    RowPosition place = last;
    Remembered empty = Remembered.gone(place);
    List<InternalRow> itself = new ArrayList<>(List.of(line(truncation, empty, null, true)));
    java.util.Iterator<InternalRow> rows =
        truncations.truncate(
            place, left -> line(truncation, Remembered.gone(left.place().movedTo(place)), standing(left), true));
    return CollectionConverters.asScala(counting(itself, truncation, outcomes).iterator())
        .concat(() -> CollectionConverters.asScala(rows));
  }

  /** Returns whether the row has all these entries after its last change. */
  private boolean has(Remembered last, ArrayData entries) {
    return new HashSet<>(elements(last.entries())).containsAll(elements(entries));
  }

  private List<Object> elements(ArrayData entries) {
    return Arrays.asList(entries.toObjectArray(type.elementType()));
  }

  private static ArrayData standing(Remembered last) {
    return last == null ? null : last.entries();
  }

  private void remember(Remembered last, boolean wasLive, boolean wasKnown) {
    if (last.isGone()) {
      if (wasLive) {
        entries.clear();
      }
      gone.update(last.stored());
      return;
    }
    if (wasKnown && !wasLive) {
      gone.clear();
    }
    entries.update(last.stored());
  }

  /** Returns the line of a change, without outcomes; `now` is the state of its row. */
  private static InternalRow line(InternalRow change, Remembered now, ArrayData previous, boolean applied) {
    RowPosition place = now.place();
    return InternalState.line(new Object[] {place.epoch(), place.written(), now.entries(), previous, applied, null}, change);
  }

  /** Returns the line of a letter, which does not have all columns of a change. */
  private InternalRow unchanged(InternalRow letter) {
    Object[] own = new Object[OUTCOMES + 1];
    own[EPOCH] = letter.isNullAt(epoch) ? null : letter.getLong(epoch);
    own[SEQUENCE] = letter.isNullAt(sequence) ? null : letter.getLong(sequence);
    own[CURRENT] = letter.isNullAt(current) ? null : letter.getArray(current);
    own[OUTCOMES - 1] = false;
    return InternalState.line(own, letter);
  }
}
