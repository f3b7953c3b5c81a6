package io.statecast.spark;

import java.io.Serializable;
import org.apache.spark.sql.streaming.TimeMode;

/**
 * Spark's time mode ProcessingTime for a processor whose values have a time to live, and that has no timers.
 *
 * <p>In real-time mode Spark seeks expired timers in the store after each line. It does so where ProcessingTime equals the
 * mode; a time to live is allowed where the mode equals ProcessingTime. With this mode the operator passes a watermark on,
 * so that none may be defined behind it. By Spark's private parts, which may change with any release; this is for 4.3.
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

  /** The name that checkpoints have. */
  @Override
  public String toString() {
    return TimeMode.ProcessingTime().toString();
  }
}
