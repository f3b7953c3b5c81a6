package io.statecast.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.StructType;

/** Adds up the lines of a group one after the other, and gives the total at each that asks; called from Python. */
public final class RunningTotals {
  private RunningTotals() {}

  /**
   * Gives one line with `key`, `payload` and the totals so far, named like the numbers, for each line that has a
   * `payload`. Each line with one of {@link LetterKeys} in its `key` goes on with its `letter`, and nothing else.
   *
   * <p>The lines of a group that come together are taken in the order of (`epoch`, `sequence`), and of those that one
   * change has made, the ones without a payload first. So a batch that runs again gives the same lines: its totals do
   * not depend on the order in which its shuffle brought them.
   *
   * @param lines with `key` and `primary_key` (text), `epoch` and `sequence` (bigint), none of them null, `payload`
   *     (binary), `letter` (null on each line of a group) and the numbers, which are bigints or decimals
   * @param numbers the names of the columns that are added up; the first counts rows, and a group without any is
   *     forgotten
   */
  public static Dataset<Row> apply(Dataset<Row> lines, List<String> numbers) {
    StructType input = lines.schema();
    GroupPart[] totals = new GroupPart[numbers.size()];
    StructType output = new StructType().add("key", "string", false).add("payload", "binary", true);
    for (int i = 0; i < totals.length; i++) {
      totals[i] = GroupPart.of("sum", input.apply(numbers.get(i)).dataType());
      output = output.add(numbers.get(i), totals[i].shown, true);
    }
    output = output.add(LetterKeys.COLUMN, input.apply(LetterKeys.COLUMN).dataType(), true);
    RunningTotalsProcessor processor = new RunningTotalsProcessor(input, List.copyOf(numbers), totals);
    return InternalState.results(lines, "key", processor, TimeMode.None(), output);
  }
}
