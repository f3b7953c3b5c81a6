package io.statecast.spark;

import java.time.Duration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Joins the rows that two tables have under one key, and tells each change of either; the door for Python. */
public final class TableJoin {
  private TableJoin() {}

  /**
   * Of each key that a batch has touched, and that has a joined row or had one before, one line: `key`, `deleted` (whether
   * it has none now), `sequence`, the rows `source_row` and `joined_row`, and the `source` of the change that came last.
   * `outcomes` says how many lines of the key ended in which way. A line of a key without a joined row, before or now, has
   * nothing else, and `deleted` is null. Each line with one of {@link LetterKeys} in its `key` goes on with its `letter`, and
   * nothing else.
   *
   * <p>A line counts when its (`epoch`, `sequence`) is higher than what its side has under the key. The `sequence` of what is
   * told rises with every batch that tells of the key: it is the batch's time, in milliseconds since 1970, or one more than
   * the one before. A batch that runs again has the same time, and tells the same.
   *
   * @param lines with `key` (text), `side` (int: 0 of the source, 1 of the joined table), `epoch` and `sequence` (bigint),
   *     none of them null, `payload` (binary, null where the row is gone), `source` (binary), `committed` (bigint, may be
   *     null; decides which of two changes came last) and `time` (bigint, by which a lower place is found to be newer all
   *     the same; null where it says nothing), and `letter` (null on each line of a table)
   * @param forgetSeconds how long a key is remembered that neither table has a row of
   * @param sourceAlone whether a row of the source is a joined row without one of the joined table
   * @param joinedAlone the same of a row of the joined table
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
