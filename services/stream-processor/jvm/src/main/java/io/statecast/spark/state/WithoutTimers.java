package io.statecast.spark.state;

import java.io.Serializable;
import org.apache.spark.sql.streaming.TimeMode;

/**
 * Replaces Spark's time mode ProcessingTime for a processor that has no timers, and values with a time to live.
 *
 * <p>In real-time mode, Spark looks for expired timers in the store after each line. It does so if ProcessingTime
 * equals the mode, but allows a time to live if the mode equals ProcessingTime. With this mode the operator passes a
 * watermark on, so none may be defined after it. It uses Spark's private parts, which may change with any release; this
 * is for 4.3.
 */
final class WithoutTimers extends TimeMode implements Serializable {
  private static final long serialVersionUID = 1L;

  @Override
  public boolean equals(Object other) {
    return other instanceof WithoutTimers || TimeMode.ProcessingTime().equals(other);
  }

  @Override
  public int hashCode() {
    return TimeMode.ProcessingTime().hashCode();
  }

  /** Returns the name that checkpoints contain. */
  @Override
  public String toString() {
    return TimeMode.ProcessingTime().toString();
  }
}
