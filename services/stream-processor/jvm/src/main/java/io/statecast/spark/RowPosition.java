package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Where a row stands in its history: after which of its changes, and with which number it was written.
 *
 * <p>A change has its log sequence number. A row that a snapshot has read has none: it is only known where the log was
 * when it was read. A transaction that was open meanwhile may have changed the row at a lower number than that, and the row
 * as it left it must win. So a row that was read leaves the number of the last change as it is, by which changes are
 * compared, and is written with the next higher number. A change is written with its own number, or with the next higher
 * one where so many snapshots have come before it that its own is taken.
 *
 * @param time of the last change, in microseconds, null if unknown
 */
record RowPosition(long epoch, long sequence, long written, Long time) implements Comparable<RowPosition> {
  /** The position in the first fields of a row: epoch, sequence, written, time; null for null. */
  static RowPosition in(InternalRow row) {
    return row == null
        ? null
        : new RowPosition(row.getLong(0), row.getLong(1), row.getLong(2), row.isNullAt(3) ? null : (Long) row.getLong(3));
  }

  /** That of a change itself, as if nothing were known of its row. */
  static RowPosition own(long epoch, long sequence, Long time) {
    return new RowPosition(epoch, sequence, sequence, time);
  }

  /**
   * The position of a row after a change, or null when the change is not newer.
   *
   * @param sequence the change's log sequence number; of a row that was read, the negative one of where the log was
   * @param time of the change, in microseconds; one that is null leaves the time that was known
   * @param last that of the row after its last applied change; null when nothing is known of it
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

  /** That of a change for a row which is here: readers take it for newer. */
  RowPosition movedTo(RowPosition change) {
    long number = epoch == change.epoch ? Math.max(change.written, next()) : change.written;
    return new RowPosition(change.epoch, change.sequence, number, change.time);
  }

  /** The lowest number that readers take for newer. */
  private long next() {
    return written + 1;
  }

  /**
   * Whether a change that is not newer by its place is newer by its time: the log began anew, or another one goes on.
   *
   * @param time of the change, in microseconds; null where it says nothing
   * @param lastTime that of the row's last applied change
   */
  static boolean isNewer(Long time, Long lastTime) {
    return time != null && lastTime != null && time > lastTime;
  }

  /** Compares two positions by their changes, and those after the same change by when the row was written. */
  @Override
  public int compareTo(RowPosition other) {
    int byEpoch = Long.compare(epoch, other.epoch);
    int byChange = byEpoch != 0 ? byEpoch : Long.compare(sequence, other.sequence);
    return byChange != 0 ? byChange : Long.compare(written, other.written);
  }
}
