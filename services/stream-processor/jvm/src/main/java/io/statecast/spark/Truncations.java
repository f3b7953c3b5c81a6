package io.statecast.spark;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What TRUNCATE of the source's table does to one partition of the state, for one task.
 *
 * <p>The last truncation is remembered in `gone` like a row's deletion, and stands for that of every row with a lower
 * position: so rows need no deletions of their own, and a change from before it that comes later is found out, of
 * whichever row.
 */
final class Truncations {
  /** Where the partition remembers its last truncation. */
  private static final UTF8String KEY = UTF8String.fromString("\0");

  private final String state;
  private final ValueState<InternalRow> entries;
  private final ValueState<InternalRow> gone;
  private RowPosition last;
  private boolean known;

  /**
   * @param state the name of `entries`
   * @param entries the {@link Remembered} of each row that has entries
   * @param gone that of rows that have none, with a time to live
   */
  Truncations(String state, ValueState<InternalRow> entries, ValueState<InternalRow> gone) {
    this.state = state;
    this.entries = entries;
    this.gone = gone;
  }

  /** The {@link RowPosition} of the last truncation, null when there was none in a long time; read once per task. */
  RowPosition last() {
    if (!known) {
      last = RowPosition.in(SparkInternals.at(KEY, gone::get));
      known = true;
    }
    return last;
  }

  /** Whether a row, null when nothing is known of it, is not after the last truncation. */
  boolean cover(Remembered row) {
    return last() != null && (row == null || row.place().compareTo(last) <= 0);
  }

  /**
   * Remembers a truncation, and takes away the entries of each row that it covers while the result is read.
   *
   * @param leaving makes the result of what was remembered of a row
   */
  <T> Iterator<T> truncate(RowPosition place, Function<Remembered, T> leaving) {
    last = place;
    known = true;
    SparkInternals.at(
        KEY,
        () -> {
          gone.update(Remembered.gone(place).stored());
          return null;
        });
    Iterator<UTF8String> keys = SparkInternals.keys(state, gone);
    return new Iterator<>() {
      private T next;

      @Override
      public boolean hasNext() {
        while (next == null && keys.hasNext()) {
          Remembered left = SparkInternals.at(keys.next(), Truncations.this::take);
          next = left == null ? null : leaving.apply(left);
        }
        return next != null;
      }

      @Override
      public T next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        T result = next;
        next = null;
        return result;
      }
    };
  }

  /** Takes the entries of the row at hand away and returns them, or null if it stays. */
  private Remembered take() {
    Remembered live = Remembered.in(entries.get());
    if (!cover(live)) {
      return null;
    }
    entries.clear();
    return live;
  }
}
