package io.statecast.spark;

import java.time.Duration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Remembers what each row stood for, and hands it to the row's next change; the door for Python. */
public final class Previous {
  private Previous() {}

  /**
   * Adds `previous`, the entries that the row had before, `applied`, whether the change is newer than all before it, and
   * `outcomes`, which says how many of the changes with `counted` ended in which way; null on a line that counts none.
   *
   * <p>Where changes end and nothing else would go on, a line goes on that has nothing in `current` and is not `applied`.
   *
   * <p>Works alike in batches, micro-batches and real-time mode. Columns that are not named here go through untouched.
   *
   * <p>A truncation of the table is a line of each of the {@link #partitionKeys}: each row that it covers goes on as if it
   * had been deleted by that line. A change from before it that comes later goes on with nothing in `current`, at the
   * truncation's place and with its own entries as `previous`, for they may stand somewhere from before a crash; of
   * `everyChange` it is one that is not newer.
   *
   * <p>A line with one of {@link LetterKeys} in its `primary_key` is no change: it goes on as it is, not `applied`, and may have
   * nulls wherever a change has none.
   *
   * @param changes with `primary_key` (text), `epoch` and `sequence` (bigint, not null), `time` (bigint, by which a lower
   *     place is found to be newer all the same; null where it says nothing), `counted` (boolean, not null: whether the line
   *     is the one that stands for its record) and `current` (an array, not null: the entries that the row has now)
   * @param forgetSeconds how long a row without entries is remembered; after that an older change of it would count again
   * @param everyChange whether changes that are not newer go on too, with `applied` false and `previous` null. Otherwise
   *     only the newest goes on of the changes of a row that come together, and of those that are not newer each that has
   *     entries which the row does not have now: with `applied` false, at the row's place and with what the row has in
   *     `current`, and its own entries as `previous`, for they may stand somewhere from before a crash
   */
  public static Dataset<Row> apply(Dataset<Row> changes, long forgetSeconds, boolean everyChange) {
    StructType input = changes.schema();
    PreviousProcessor processor = new PreviousProcessor(input, Duration.ofSeconds(forgetSeconds), everyChange);
    // A sum of every change may define a watermark.
    TimeMode time = everyChange ? TimeMode.ProcessingTime() : new WithoutTimers();
    return InternalState.transform(changes, "primary_key", processor, time, PreviousProcessor.columns(input));
  }

  /** The `primary_key`s that a line for all of so many partitions of the state has, one for each. */
  public static String[] partitionKeys(int partitions) {
    return PartitionKeys.all(partitions);
  }
}
