package io.statecast.spark;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.BiFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.ValueState;

/**
 * What TRUNCATE of the source's table does to one partition of the state, for one task.
 *
 * <p>The last truncation is remembered in `gone` like a row's deletion, and stands for that of every row with a lower
 * position: so rows need no deletions of their own, and a change from before it that comes later is found out, of
 * whichever row.
 */
final class Truncations {
  /** Where the partition remembers its last truncation. */
  private static final String KEY = "\0";

  private final String state;
  private final ValueState<Row> entries;
  private final ValueState<Row> gone;
  private Row last;
  private boolean known;

  /**
   * @param state the name of `entries`
   * @param entries the {@link RowPosition} of each row that has entries, and more
   * @param gone positions, with a time to live
   */
  Truncations(String state, ValueState<Row> entries, ValueState<Row> gone) {
    this.state = state;
    this.entries = entries;
    this.gone = gone;
  }

  /** The {@link RowPosition} of the last truncation, null when there was none in a long time; read once per task. */
  Row last() {
    if (!known) {
      last = SparkInternals.at(KEY, gone::get);
      known = true;
    }
    return last;
  }

  /** Whether the position of a row, null when nothing is known of it, is not after the last truncation. */
  boolean cover(Row place) {
    return last() != null && (place == null || RowPosition.compare(place, last) <= 0);
  }

  /**
   * Remembers a truncation, and takes away the entries of each row that it covers while the result is read.
   *
   * @param leaving makes the result of the row's key and of what was remembered of it
   */
  <T> Iterator<T> truncate(Row place, BiFunction<String, Row, T> leaving) {
    last = place;
    known = true;
    SparkInternals.at(
        KEY,
        () -> {
          gone.update(place);
          return null;
        });
    Iterator<String> keys = SparkInternals.keys(state, gone);
    return new Iterator<>() {
      private T next;

      @Override
      public boolean hasNext() {
        while (next == null && keys.hasNext()) {
          String key = keys.next();
          Row left = SparkInternals.at(key, Truncations.this::take);
          next = left == null ? null : leaving.apply(key, left);
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
  private Row take() {
    Row live = entries.get();
    if (!cover(live)) {
      return null;
    }
    entries.clear();
    return live;
  }
}
