package io.statecast.spark;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** The state behind {@link Windows}: of each window that has not ended its sums, and a timer. */
final class WindowsProcessor extends StatefulProcessor<String, Row, Row> {
  private static final long serialVersionUID = 1L;
  private static final String BETWEEN_PARTS = "\0";

  /** After a crash fewer lines may have come before the end than readers know of: the end must be above those. */
  private static final long END_TICKS = 1L << 40;

  private static final StructType BESIDE_PARTS =
      new StructType()
          .add("rows", "bigint", false)
          .add("ticks", "bigint", false)
          .add("epoch", "bigint", false)
          .add("sequence", "bigint", false)
          .add("source", "binary", true);

  private static final int ROWS = 0;
  private static final int TICKS = 1;
  private static final int EPOCH = 2;
  private static final int SEQUENCE = 3;
  private static final int SOURCE = 4;
  private static final int PARTS = 5;

  private final GroupPart[] parts;
  private final int[] fields;
  private final int letter;
  private final StructType held;
  private transient ValueState<Row> windows;

  WindowsProcessor(StructType lines, List<GroupPart> parts) {
    this.parts = parts.toArray(GroupPart[]::new);
    StructType state = BESIDE_PARTS;
    for (GroupPart part : parts) {
      state = state.add(part.name, part.held, true);
    }
    this.held = state;
    this.letter = lines.fieldIndex(LetterKeys.COLUMN);
    this.fields = new int[state.size()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = lines.fieldIndex(state.apply(i).name());
    }
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    windows = getHandle().getValueState("windows", Encoders.row(held), TTLConfig.NONE());
  }

  @Override
  public Iterator<Row> handleInputRows(String key, Iterator<Row> lines, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return lines.map(line -> empty(key, 0, line.get(letter)));
    }
    long end = Instant.parse(key.substring(key.lastIndexOf(BETWEEN_PARTS) + 1)).toEpochMilli();
    // A timer fires once the watermark has reached its time, and a window stands as long as it has not passed the end.
    long after = end + 1;
    if (timers.getCurrentWatermarkInMs() >= after) {
      return one(empty(key, lines.size(), null));
    }
    Row known = windows.get();
    if (known == null) {
      getHandle().registerTimer(after);
    }
    Object[] now = known == null ? nothing() : RowValues.of(known, 0);
    lines.foreach(
        line -> {
          add(line, now);
          return null;
        });
    windows.update(RowFactory.create(now.clone()));
    return one(shown(key, now, false));
  }

  @Override
  public Iterator<Row> handleExpiredTimer(String key, TimerValues timers, ExpiredTimerInfo timer) {
    Object[] now = RowValues.of(windows.get(), 0);
    windows.clear();
    if ((Long) now[ROWS] == 0) {
      return CollectionConverters.asScala(List.<Row>of().iterator());
    }
    now[TICKS] = (Long) now[TICKS] + END_TICKS;
    return one(shown(key, now, true));
  }

  private void add(Row line, Object[] now) {
    for (int sum : new int[] {ROWS, TICKS}) {
      now[sum] = (Long) now[sum] + line.getLong(fields[sum]);
    }
    if (isNewer(line, now)) {
      for (int field : new int[] {EPOCH, SEQUENCE, SOURCE}) {
        now[field] = line.get(fields[field]);
      }
    }
    for (int i = PARTS; i < now.length; i++) {
      if (!line.isNullAt(fields[i])) {
        now[i] = parts[i - PARTS].fold(now[i], line.get(fields[i]));
      }
    }
  }

  private boolean isNewer(Row line, Object[] now) {
    int byEpoch = Long.compare(line.getLong(fields[EPOCH]), (Long) now[EPOCH]);
    return byEpoch > 0 || (byEpoch == 0 && line.getLong(fields[SEQUENCE]) > (Long) now[SEQUENCE]);
  }

  private Object[] nothing() {
    Object[] now = new Object[fields.length];
    now[ROWS] = 0L;
    now[TICKS] = 0L;
    now[EPOCH] = Long.MIN_VALUE;
    now[SEQUENCE] = Long.MIN_VALUE;
    return now;
  }

  private Row shown(String key, Object[] now, boolean ended) {
    List<Object> values = new ArrayList<>(List.of(key, now[ROWS], now[TICKS]));
    values.add(now[SOURCE]);
    for (int i = PARTS; i < now.length; i++) {
      values.add(parts[i - PARTS].show(now[i]));
    }
    values.add(ended);
    values.add(0);
    values.add(null);
    return RowFactory.create(values.toArray());
  }

  /** A line without sums. */
  private Row empty(String key, int late, Object letter) {
    Object[] values = new Object[4 + parts.length + 3];
    values[0] = key;
    values[values.length - 3] = false;
    values[values.length - 2] = late;
    values[values.length - 1] = letter;
    return RowFactory.create(values);
  }

  private static Iterator<Row> one(Row row) {
    return CollectionConverters.asScala(List.of(row).iterator());
  }
}
