package io.statecast.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Finds events that were sent more than once; called from Python. */
public final class Deduplicate {
  private Deduplicate() {}

  /**
   * Adds `first`, false for an event that repeats an earlier one, and `outcomes`, which counts both; null on a line
   * that counts none. A line with one of {@link LetterKeys} in its `identity` is not an event: it goes on as a first
   * one, counts none, and leaves nothing in the state.
   *
   * <p>Of the events of an identity that come together, the one with the lowest `sequence` is the first. An identity is
   * remembered for twice `within`, by the clock, after its first event was read. So repetitions that were sent in this
   * time are detected even if the reader was away for as long.
   *
   * @param events with `identity` (text, not null), `time` (bigint in microseconds, null if unknown) and `sequence`
   *     (bigint, not null)
   * @param within in microseconds: an event repeats the first one of its identity if it is less than that apart from it
   */
  public static Dataset<Row> apply(Dataset<Row> events, long within) {
    StructType input = events.schema();
    StructType columns = new StructType().add("first", "boolean", false).add(Outcomes.COLUMN, Outcomes.TYPE, true);
    DeduplicateProcessor processor = new DeduplicateProcessor(input, within);
    return InternalState.transform(events, "identity", processor, TimeMode.ProcessingTime(), columns);
  }
}
