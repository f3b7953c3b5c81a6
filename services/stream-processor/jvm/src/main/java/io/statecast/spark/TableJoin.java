package io.statecast.spark;

import java.time.Duration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Joins the rows that two tables have under one key, and reports each change of either; called from Python. */
public final class TableJoin {
  private TableJoin() {}

  /**
   * Gives one line for each key that a batch has touched. If the key has a joined row or had one before, the line has
   * `key`, `deleted` (whether it has none now), `sequence`, the rows `source_row` and `joined_row`, and the `source` of
   * the change that came last. `outcomes` counts the outcomes of the key's lines. The line of a key without a joined
   * row, before or now, has nothing else, and `deleted` is null. Each line with one of {@link LetterKeys} in its `key`
   * goes on with its `letter`, and nothing else.
   *
   * <p>A line counts if its (`epoch`, `sequence`) is higher than the last of its side under the key. The `sequence` of
   * the result rises with every batch that reports the key: it is the batch's time, in milliseconds since 1970, or one
   * more than the one before. A batch that runs again has the same time, and gives the same.
   *
   * @param lines with `key` (text), `side` (int: 0 of the source, 1 of the joined table), `epoch` and `sequence`
   *     (bigint), none of them null, `payload` (binary, null if the row is gone), `source` (binary), `committed`
   *     (bigint, may be null; decides which of two changes came last) and `time` (bigint, which shows that a change at
   *     a lower place is newer all the same; null if unknown), and `letter` (null on each line of a table)
   * @param forgetSeconds how long a key is remembered after neither table has a row of it
   * @param sourceAlone whether a row of the source is a joined row without one of the joined table
   * @param joinedAlone the same for a row of the joined table
   */
  public static Dataset<Row> apply(Dataset<Row> lines, long forgetSeconds, boolean sourceAlone, boolean joinedAlone) {
    StructType input = lines.schema();
    StructType output =
        new StructType()
            .add("key", "string", false)
            .add("deleted", "boolean", true)
            .add("sequence", "bigint", false)
            .add("source_row", "binary", true)
            .add("joined_row", "binary", true)
            .add("source", "binary", true)
            .add(Outcomes.COLUMN, Outcomes.TYPE, true)
            .add(LetterKeys.COLUMN, input.apply(LetterKeys.COLUMN).dataType(), true);
    TableJoinProcessor processor =
        new TableJoinProcessor(input, Duration.ofSeconds(forgetSeconds), sourceAlone, joinedAlone);
    return InternalState.results(lines, "key", processor, TimeMode.ProcessingTime(), output);
  }
}
