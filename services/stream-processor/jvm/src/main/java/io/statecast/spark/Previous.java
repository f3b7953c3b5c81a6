package io.statecast.spark;

import java.time.Duration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Remembers the entries of each row, and passes them to the row's next change; called from Python. */
public final class Previous {
  private Previous() {}

  /**
   * Adds `previous`, the entries that the row had before; `applied`, whether the change is newer than all before it;
   * and `outcomes`, the number of changes with `counted` by outcome, null on a line that counts none.
   *
   * <p>If no other line would carry the outcomes, one goes on with nothing in `current` and `applied` false.
   *
   * <p>It works alike in batches, micro-batches and real-time mode. Columns that are not named here go through
   * untouched.
   *
   * <p>A truncation of the table is a line for each of the {@link #partitionKeys}: each row that it covers goes on as
   * if that line had deleted it. An earlier change that comes later goes on with nothing in `current`, at the
   * truncation's place and with its own entries as `previous`, because these may have been written before a crash; with
   * `everyChange`, it is one that is not newer.
   *
   * <p>A line with one of {@link LetterKeys} in its `primary_key` is not a change: it goes on as it is, with `applied`
   * false, and may have nulls wherever a change has none.
   *
   * @param changes with `primary_key` (text), `epoch` and `sequence` (bigint, not null), `time` (bigint, which shows
   *     that a change at a lower place is newer all the same; null if unknown), `counted` (boolean, not null: whether
   *     the line stands for its record) and `current` (an array, not null: the entries that the row has now)
   * @param forgetSeconds how long a row without entries is remembered; after that, an older change of it would count
   *     again
   * @param everyChange whether changes that are not newer go on too, with `applied` false and `previous` null.
   *     Otherwise only the newest of a row's changes that come together goes on, and each change that is not newer and
   *     has entries that the row does not have now: with `applied` false, at the row's place and with the row's entries
   *     in `current`, and its own entries as `previous`, because these may have been written before a crash
   */
  public static Dataset<Row> apply(Dataset<Row> changes, long forgetSeconds, boolean everyChange) {
    StructType input = changes.schema();
    PreviousProcessor processor = new PreviousProcessor(input, Duration.ofSeconds(forgetSeconds), everyChange);
    // A sum after every change may define a watermark.
    TimeMode time = everyChange ? TimeMode.ProcessingTime() : new WithoutTimers();
    return InternalState.transform(changes, "primary_key", processor, time, PreviousProcessor.columns(input));
  }

  /** Returns the `primary_key`s of a line for all of so many partitions of the state, one for each. */
  public static String[] partitionKeys(int partitions) {
    return PartitionKeys.all(partitions);
  }
}
