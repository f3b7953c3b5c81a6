package io.statecast.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Adds the differences of groups up; the door for Python. */
public final class GroupSums {
  private GroupSums() {}

  /**
   * A line per group and batch, or in real-time mode per line: `key`, `rows` and `ticks`, which are sums, the `source` of
   * the line with the newest commit, the parts, `ended` and `late`.
   *
   * <p>A group that is a window ends once the watermark is behind its end, and leaves the state. It has `ended` with the last
   * line of it, which is many ticks above the one before. A window without rows has none such, for it was deleted before.
   * `late` counts the lines that came after the end; where it is not 0, all but it and the key is null. Each line with one of
   * {@link LetterKeys} in its `key` goes on with its `letter`, and nothing else.
   *
   * @param lines with `key` (text), `sequence`, `rows` and `ticks` (bigint, not null), `committed` (µs, or null), `source`
   *     (binary), the parts and `letter` (null on each line of a group)
   * @param names the columns of the parts
   * @param functions those of their {@link GroupPart}s
   * @param end whether groups end: then the key ends with NUL and the window's end as RFC 3339 has it, and the query has a
   *     watermark
   */
  public static Dataset<Row> apply(Dataset<Row> lines, List<String> names, List<String> functions, boolean end) {
    StructType input = lines.schema();
    GroupPart[] parts = new GroupPart[names.size()];
    StructType output =
        new StructType()
            .add("key", "string", false)
            .add("rows", "bigint", true)
            .add("ticks", "bigint", true)
            .add("source", "binary", true);
    for (int i = 0; i < parts.length; i++) {
      parts[i] = GroupPart.of(functions.get(i), contribution(input.apply(names.get(i)).dataType()));
      output = output.add(names.get(i), parts[i].shown, true);
    }
    output =
        output
            .add("ended", "boolean", false)
            .add("late", "int", false)
            .add(LetterKeys.COLUMN, input.apply(LetterKeys.COLUMN).dataType(), true);
    GroupSumsProcessor processor = new GroupSumsProcessor(input, List.copyOf(names), parts, end);
    return InternalState.results(lines, "key", processor, end ? TimeMode.EventTime() : TimeMode.None(), output);
  }

  /** The type of a contribution by that of a difference: that of a set is struct(removed, added). */
  private static DataType contribution(DataType difference) {
    return difference instanceof StructType sides ? sides.apply(0).dataType() : difference;
  }
}
