package io.statecast.spark;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * Where a row stands in its history: after which of its changes, and with which number it was written.
 *
 * <p>A change has its log sequence number. A row that a snapshot has read has none: it is only known where the log was
 * when it was read. A transaction that was open meanwhile may have changed the row at a lower number than that, and the row
 * as it left it must win. So a row that was read leaves the number of the last change as it is, by which changes are
 * compared, and is written with the next higher number. A change is written with its own number, or with the next higher
 * one where so many snapshots have come before it that its own is taken.
 *
 * <p>A position is (epoch, sequence, written, time), and more may follow.
 */
final class RowPosition {
  static final int EPOCH = 0;
  static final int SEQUENCE = 1;
  static final int WRITTEN = 2;
  static final int TIME = 3;

  private RowPosition() {}

  /**
   * The position of a row after a change, or null when the change is not newer.
   *
   * @param sequence the change's log sequence number; of a row that was read, the negative one of where the log was
   * @param time of the change, in microseconds; one that is null leaves the time that was known
   * @param last that of the row after its last applied change; null when nothing is known of it
   */
  static Row of(long epoch, long sequence, Long time, Row last) {
    if (last == null || epoch > last.getLong(EPOCH)) {
      long number = Math.max(sequence, 0);
      return RowFactory.create(epoch, number, sequence < 0 ? 1L : number, known(time, last));
    }
    long change = last.getLong(SEQUENCE);
    if (epoch < last.getLong(EPOCH) || Math.abs(sequence) <= change) {
      return null;
    }
    long next = next(last);
    return sequence < 0
        ? RowFactory.create(epoch, change, next, known(time, last))
        : RowFactory.create(epoch, sequence, Math.max(sequence, next), known(time, last));
  }

  /** The fields of a position without those that follow them. */
  static Row alone(Row position) {
    return RowFactory.create(position.get(EPOCH), position.get(SEQUENCE), position.get(WRITTEN), position.get(TIME));
  }

  /** That of a change for a row which was at `last`: readers take it for newer. */
  static Row after(Row last, Row change) {
    boolean sameEpoch = last.getLong(EPOCH) == change.getLong(EPOCH);
    long written = sameEpoch ? Math.max(change.getLong(WRITTEN), next(last)) : change.getLong(WRITTEN);
    return RowFactory.create(change.get(EPOCH), change.get(SEQUENCE), written, change.get(TIME));
  }

  /** The lowest number that readers take for newer. */
  private static long next(Row last) {
    return last.getLong(WRITTEN) + 1;
  }

  private static Long known(Long time, Row last) {
    return time == null && last != null ? time(last, TIME) : time;
  }

  static Long time(Row row, int field) {
    return row.isNullAt(field) ? null : (Long) row.getLong(field);
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
  static int compare(Row one, Row other) {
    for (int field : new int[] {EPOCH, SEQUENCE}) {
      int by = Long.compare(one.getLong(field), other.getLong(field));
      if (by != 0) {
        return by;
      }
    }
    return Long.compare(one.getLong(WRITTEN), other.getLong(WRITTEN));
  }
}
