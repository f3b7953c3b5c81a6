package io.statecast.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Adds the lines of windows up, and deletes a window once the watermark is behind its end; the door for Python. */
public final class Windows {
  private final Dataset<Row> lines;
  private final List<GroupPart> parts = new ArrayList<>();

  /**
   * @param lines with `key` (text, which ends with NUL and the window's end as RFC 3339 has it), `epoch`, `sequence`, `rows`
   *     and `ticks` (bigint, not null), `source` (binary), the parts and `letter` (null on each line of a window), of a query
   *     with a watermark
   */
  public Windows(Dataset<Row> lines) {
    this.lines = lines;
  }

  /** Adds the sum of a column of bigints or decimals. */
  public void sum(String part) {
    parts.add(GroupPart.sum(part, type(part)));
  }

  /** Adds the least value of a column. */
  public void min(String part) {
    parts.add(GroupPart.extreme(part, type(part), -1));
  }

  /** Adds the greatest value of a column. */
  public void max(String part) {
    parts.add(GroupPart.extreme(part, type(part), 1));
  }

  /** Adds the set of a column struct(removed, added), both arrays of texts or bigints; {@link CollectSet} says the bounds. */
  public void set(String part, DataType value, int maxValues, int maxBytes) {
    parts.add(GroupPart.set(part, new CollectSet(value, maxValues, maxBytes)));
  }

  /**
   * A line per window and batch, or in real-time mode per line: `key`, `rows` and `ticks`, which are sums, the `source` of
   * the line with the highest (epoch, sequence), the parts, `ended` and `late`.
   *
   * <p>A window has `ended` with the last line of it, which is many ticks above the one before. A window without rows has none
   * such, for it was deleted before. `late` counts the lines that came after the end; where it is not 0, all but it and the
   * key is null. Each line with one of {@link LetterKeys} in its `key` goes on with its `letter`, and nothing else.
   */
  public Dataset<Row> apply() {
    StructType output =
        new StructType()
            .add("key", "string", false)
            .add("rows", "bigint", true)
            .add("ticks", "bigint", true)
            .add("source", "binary", true);
    for (GroupPart part : parts) {
      output = output.add(part.name, part.shown, true);
    }
    output =
        output
            .add("ended", "boolean", false)
            .add("late", "int", false)
            .add(LetterKeys.COLUMN, type(LetterKeys.COLUMN), true);
    WindowsProcessor processor = new WindowsProcessor(lines.schema(), parts);
    return lines
        .groupBy("key")
        .as(Encoders.STRING(), Encoders.row(lines.schema()))
        .transformWithState(processor, TimeMode.EventTime(), OutputMode.Update(), Encoders.row(output));
  }

  private DataType type(String part) {
    return lines.schema().apply(part).dataType();
  }
}
