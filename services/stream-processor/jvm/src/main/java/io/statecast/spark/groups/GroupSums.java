package io.statecast.spark.groups;

import io.statecast.spark.state.InternalState;
import io.statecast.spark.state.LetterKeys;
import io.statecast.spark.state.RowReader;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** Adds up the differences of groups: keeps the sums of each group, and a timer if it ends. */
public final class GroupSums extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
  private static final long serialVersionUID = 1L;
  private static final String BETWEEN_PARTS = "\0";

  /** Lifts the end above all ticks that readers may have seen: after a crash, fewer lines may have come before it. */
  private static final long END_TICKS = 1L << 40;

  private static final Comparator<Long> OLDEST_FIRST = Comparator.nullsFirst(Comparator.naturalOrder());

  private static final StructType BESIDE_PARTS =
      new StructType()
          .add("rows", "bigint", false)
          .add("ticks", "bigint", false)
          .add("committed", "bigint", true)
          .add("sequence", "bigint", false)
          .add("source", "binary", true);

  private static final int ROWS = 0;
  private static final int TICKS = 1;
  private static final int COMMITTED = 2;
  private static final int SEQUENCE = 3;
  private static final int SOURCE = 4;
  private static final int PARTS = 5;

  /** The number of columns before the parts in the result, and after them. */
  private static final int SHOWN_BEFORE = 4;

  private static final int SHOWN_BEHIND = 3;

  private final RowReader lines;
  private final GroupPart[] parts;
  private final boolean end;
  private final int[] fields;
  private final int letter;
  private final StructType held;
  private final RowReader stored;
  private transient ValueState<InternalRow> groups;

  GroupSums(StructType lines, List<String> names, GroupPart[] parts, boolean end) {
    StructType state = BESIDE_PARTS;
    for (int i = 0; i < parts.length; i++) {
      state = state.add(names.get(i), parts[i].held, true);
    }
    this.lines = new RowReader(lines);
    this.parts = parts;
    this.end = end;
    this.held = state;
    this.stored = new RowReader(state);
    this.letter = lines.fieldIndex(LetterKeys.COLUMN);
    this.fields = new int[state.size()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = lines.fieldIndex(state.apply(i).name());
    }
  }

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
    GroupSums processor = new GroupSums(input, List.copyOf(names), parts, end);
    return InternalState.results(lines, "key", processor, end ? TimeMode.EventTime() : TimeMode.None(), output);
  }

  /** Returns the type of a contribution by that of a difference; for a set, that is struct(removed, added). */
  private static DataType contribution(DataType difference) {
    return difference instanceof StructType sides ? sides.apply(0).dataType() : difference;
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    groups = getHandle().getValueState("groups", InternalState.rows(held), TTLConfig.NONE());
  }

  @Override
  public Iterator<InternalRow> handleInputRows(UTF8String key, Iterator<InternalRow> changes, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return changes.map(line -> empty(key, 0, lines.value(line, letter)));
    }
    // A timer fires when the watermark has reached its time, and a window lasts until the watermark has passed its end.
    // Spark's watermark is 0 until the clock has passed 1970, which may be years after the window.
    long after = end ? Math.max(endOf(key), 0) + 1 : 0;
    if (end && timers.getCurrentWatermarkInMs() >= after) {
      return one(empty(key, changes.size(), null));
    }
    InternalRow known = groups.get();
    if (known == null && end) {
      getHandle().registerTimer(after);
    }
    Object[] now = known == null ? nothing() : stored.values(known);
    while (changes.hasNext()) {
      add(changes.next(), now);
    }
    groups.update(new GenericInternalRow(now));
    return one(shown(key, now, false));
  }

  @Override
  public Iterator<InternalRow> handleExpiredTimer(UTF8String key, TimerValues timers, ExpiredTimerInfo timer) {
    Object[] now = stored.values(groups.get());
    groups.clear();
    if ((Long) now[ROWS] == 0) {
      return CollectionConverters.asScala(List.<InternalRow>of().iterator());
    }
    now[TICKS] = (Long) now[TICKS] + END_TICKS;
    return one(shown(key, now, true));
  }

  private static long endOf(UTF8String key) {
    String text = key.toString();
    return Instant.parse(text.substring(text.lastIndexOf(BETWEEN_PARTS) + 1)).toEpochMilli();
  }

  private void add(InternalRow line, Object[] now) {
    now[ROWS] = (Long) now[ROWS] + line.getLong(fields[ROWS]);
    now[TICKS] = (Long) now[TICKS] + line.getLong(fields[TICKS]);
    if (isNewer(line, now)) {
      now[COMMITTED] = lines.value(line, fields[COMMITTED]);
      now[SEQUENCE] = line.getLong(fields[SEQUENCE]);
      now[SOURCE] = lines.value(line, fields[SOURCE]);
    }
    for (int i = PARTS; i < now.length; i++) {
      Object difference = lines.value(line, fields[i]);
      if (difference != null) {
        now[i] = parts[i - PARTS].fold(now[i], difference);
      }
    }
  }

  /** Returns whether the line is newer, first by its commit time: sequences compare only within one commit. */
  private boolean isNewer(InternalRow line, Object[] now) {
    int byTime = OLDEST_FIRST.compare((Long) lines.value(line, fields[COMMITTED]), (Long) now[COMMITTED]);
    return byTime > 0 || (byTime == 0 && line.getLong(fields[SEQUENCE]) > (Long) now[SEQUENCE]);
  }

  private Object[] nothing() {
    Object[] now = GroupPart.nothing(parts, PARTS);
    now[ROWS] = 0L;
    now[TICKS] = 0L;
    now[SEQUENCE] = Long.MIN_VALUE;
    return now;
  }

  private InternalRow shown(UTF8String key, Object[] now, boolean ended) {
    Object[] values = columns(key);
    values[1] = now[ROWS];
    values[2] = now[TICKS];
    values[3] = now[SOURCE];
    for (int i = PARTS; i < now.length; i++) {
      values[i - PARTS + SHOWN_BEFORE] = parts[i - PARTS].show(now[i]);
    }
    values[SHOWN_BEFORE + parts.length] = ended;
    return new GenericInternalRow(values);
  }

  /** Returns a line without sums. */
  private InternalRow empty(UTF8String key, int late, Object letter) {
    Object[] values = columns(key);
    values[SHOWN_BEFORE + parts.length + 1] = late;
    values[SHOWN_BEFORE + parts.length + 2] = letter;
    return new GenericInternalRow(values);
  }

  private Object[] columns(UTF8String key) {
    Object[] values = new Object[SHOWN_BEFORE + parts.length + SHOWN_BEHIND];
    values[0] = key;
    values[SHOWN_BEFORE + parts.length] = false;
    values[SHOWN_BEFORE + parts.length + 1] = 0;
    return values;
  }

  private static Iterator<InternalRow> one(InternalRow row) {
    return CollectionConverters.asScala(List.of(row).iterator());
  }
}
