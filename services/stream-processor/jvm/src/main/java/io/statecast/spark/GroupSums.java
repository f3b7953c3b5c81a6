package io.statecast.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Adds up the differences of groups; called from Python. */
public final class GroupSums {
  private GroupSums() {}

  /**
   * Gives one line per group and batch, or per line in real-time mode: `key`, the sums `rows` and `ticks`, the `source`
   * of the line with the newest commit, the parts, `ended` and `late`.
   *
   * <p>A group that is a window ends when the watermark passes its end, and leaves the state. Its last line has
   * `ended`, and many more ticks than the line before. A window without rows gets no such line, because it was deleted
   * before. `late` counts the lines that came after the end; if it is not 0, the line has only it and the key. Each
   * line with one of {@link LetterKeys} in its `key` goes on with its `letter`, and nothing else.
   *
   * @param lines with `key` (text), `sequence`, `rows` and `ticks` (bigint, not null), `committed` (µs, or null),
   *     `source` (binary), the parts and `letter` (null on each line of a group)
   * @param names the columns of the parts
   * @param functions the functions of their {@link GroupPart}s
   * @param end whether groups end: then the key ends with NUL and the window's end in RFC 3339, and the query has a
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

  /** Returns the type of a contribution by that of a difference; for a set, that is struct(removed, added). */
  private static DataType contribution(DataType difference) {
    return difference instanceof StructType sides ? sides.apply(0).dataType() : difference;
  }
}
