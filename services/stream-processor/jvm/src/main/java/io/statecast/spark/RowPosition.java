package io.statecast.spark;

import org.apache.spark.sql.Row;

/**
 * Where a change stands in the history of its row.
 *
 * <p>A change has its log sequence number. A row that a snapshot has read has none: it is only known where the log was
 * when it was read. A transaction that was open meanwhile may have changed the row at a lower number than that, and the row
 * as it left it must win. So a row that was read goes right behind the last change that is known of it: log sequence
 * numbers are multiples of 8, and a change takes more than 8 bytes of the log. Numbers of a binlog are made like that.
 */
final class RowPosition {
  /** Stands for a change that is not newer than the last one. */
  static final long NOT_NEWER = Long.MIN_VALUE;

  /** The log of a database begins at this number: what is lower counts the snapshots of a row without changes. */
  private static final long FIRST_IN_LOG = 1L << 24;

  private static final long BETWEEN_CHANGES = 7;

  private RowPosition() {}

  /**
   * The sequence to give to a change, or {@link #NOT_NEWER}.
   *
   * @param sequence the change's log sequence number; of a row that was read, the negative one of where the log was
   * @param last (epoch, sequence) of the last applied change of the row; null when nothing is known of it
   */
  static long of(long epoch, long sequence, Row last) {
    int byEpoch = last == null ? 1 : Long.compare(epoch, last.getLong(0));
    if (byEpoch != 0) {
      return byEpoch < 0 ? NOT_NEWER : sequence < 0 ? 1 : sequence;
    }
    if (sequence >= 0) {
      return sequence > last.getLong(1) ? sequence : NOT_NEWER;
    }
    return -sequence > last.getLong(1) ? behind(last.getLong(1), -sequence) : NOT_NEWER;
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

  /** Compares two places, each (epoch, sequence, ...). */
  static int compare(Row one, Row other) {
    int byEpoch = Long.compare(one.getLong(0), other.getLong(0));
    return byEpoch != 0 ? byEpoch : Long.compare(one.getLong(1), other.getLong(1));
  }

  private static long behind(long last, long commit) {
    boolean hasRoom = last < FIRST_IN_LOG || (last & BETWEEN_CHANGES) < BETWEEN_CHANGES;
    return hasRoom ? last + 1 : commit;
  }
}
