package io.statecast.spark.source;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock;

/**
 * Tells how long a real-time batch still lasts.
 *
 * <p>Spark ends it at a time of day. That clock may go back by an hour, and no checkpoint would come for so long; so the
 * time that passes counts, too.
 */
final class BatchEnd {
  private final LongSupplier nanoTime;
  private final long begunNs;
  private long lengthMs = -1;

  BatchEnd(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.begunNs = nanoTime.getAsLong();
  }

  /** Returns the milliseconds until the batch ends, at `endMs` by Spark's clock; 0 or less once it is over. */
  long leftMs(long endMs) {
    long left = endMs - LowLatencyClock.getTimeMillis();
    long passed = TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - begunNs);
    if (lengthMs < 0) {
      lengthMs = passed + left;
    }
    return Math.min(left, lengthMs - passed);
  }
}
