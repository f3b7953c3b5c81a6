package io.statecast.spark.state;

import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The position of a row in its history: the change that it comes after, and the number with which it was written.
 *
 * <p>A change has its log sequence number. A row that a snapshot has read has none: only the position of the log at
 * that time is known. A transaction that was open then may have changed the row at a lower number, and the row as the
 * transaction left it must win. So a row that was read keeps the number of the last change, by which changes are
 * compared, and is written with the next higher number. A change is written with its own number, or with the next
 * higher one if so many snapshots have come before it that its own is taken.
 *
 * @param time the time of the last change, in microseconds; null if unknown
 */
record RowPosition(long epoch, long sequence, long written, Long time) implements Comparable<RowPosition> {
  /** Reads the position in the first fields of a row: epoch, sequence, written, time; null gives null. */
  static RowPosition in(InternalRow row) {
    return row == null
        ? null
        : new RowPosition(row.getLong(0), row.getLong(1), row.getLong(2), row.isNullAt(3) ? null : (Long) row.getLong(3));
  }

  /** Returns the position of a change itself, as if nothing were known of its row. */
  static RowPosition own(long epoch, long sequence, Long time) {
    return new RowPosition(epoch, sequence, sequence, time);
  }

  /**
   * Returns the position of a row after a change, or null if the change is not newer.
   *
   * @param sequence the change's log sequence number; for a row that was read, the negated position of the log at that
   *     time
   * @param time the time of the change, in microseconds; null leaves the known time
   * @param last the position of the row after its last applied change; null if nothing is known of the row
   */
  static RowPosition of(long epoch, long sequence, Long time, RowPosition last) {
    Long known = time == null && last != null ? last.time : time;
    if (last == null || epoch > last.epoch) {
      return new RowPosition(epoch, Math.max(sequence, 0), sequence < 0 ? 1L : sequence, known);
    }
    if (epoch < last.epoch || Math.abs(sequence) <= last.sequence) {
      return null;
    }
    return sequence < 0
        ? new RowPosition(epoch, last.sequence, last.next(), known)
        : new RowPosition(epoch, sequence, Math.max(sequence, last.next()), known);
  }

  /** Returns the position of the change for a row that is here, with a number that readers take for newer. */
  RowPosition movedTo(RowPosition change) {
    long number = epoch == change.epoch ? Math.max(change.written, next()) : change.written;
    return new RowPosition(change.epoch, change.sequence, number, change.time);
  }

  /** Returns the lowest number that readers take for newer. */
  private long next() {
    return written + 1;
  }

  /**
   * Returns whether a change that is not newer by its place is newer by its time: the log began anew, or another one
   * goes on.
   *
   * @param time the time of the change, in microseconds; null if unknown
   * @param lastTime the time of the row's last applied change
   */
  static boolean isNewer(Long time, Long lastTime) {
    return time != null && lastTime != null && time > lastTime;
  }

  /** Compares two positions by their changes; after the same change, by the number with which the row was written. */
  @Override
  public int compareTo(RowPosition other) {
    int byEpoch = Long.compare(epoch, other.epoch);
    int byChange = byEpoch != 0 ? byEpoch : Long.compare(sequence, other.sequence);
    return byChange != 0 ? byChange : Long.compare(written, other.written);
  }
}
