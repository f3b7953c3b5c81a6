package io.statecast.spark.state;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Applies TRUNCATE of the source's table to one partition of the state, for one task.
 *
 * <p>The last truncation is remembered in `gone` like a row's deletion, and stands for that of every row with a lower
 * position. So rows need no deletions of their own, and an earlier change that comes later is recognized, whatever its
 * row.
 */
final class Truncations {
  /** The key under which the partition remembers its last truncation. */
  private static final UTF8String KEY = UTF8String.fromString("\0");

  private final String state;
  private final ValueState<InternalRow> entries;
  private final ValueState<InternalRow> gone;
  private RowPosition last;
  private boolean known;

  /**
   * @param state the name of `entries`
   * @param entries the {@link Remembered} of each row that has entries
   * @param gone the {@link Remembered} of each row that has none, with a time to live
   */
  Truncations(String state, ValueState<InternalRow> entries, ValueState<InternalRow> gone) {
    this.state = state;
    this.entries = entries;
    this.gone = gone;
  }

  /**
   * Returns the {@link RowPosition} of the last truncation, null if there was none for a long time; reads it once per
   * task.
   */
  RowPosition last() {
    if (!known) {
      last = RowPosition.in(SparkInternals.at(KEY, gone::get));
      known = true;
    }
    return last;
  }

  /** Returns whether a row is not after the last truncation; null stands for an unknown row. */
  boolean cover(Remembered row) {
    return last() != null && (row == null || row.place().compareTo(last) <= 0);
  }

  /**
   * Remembers a truncation, and removes the entries of each row that it covers while the result is read.
   *
   * @param leaving makes the result for the state that a row had
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

  /** Removes the entries of the current row and returns them, or null if it stays. */
  private Remembered take() {
    Remembered live = Remembered.in(entries.get());
    if (!cover(live)) {
      return null;
    }
    entries.clear();
    return live;
  }
}
