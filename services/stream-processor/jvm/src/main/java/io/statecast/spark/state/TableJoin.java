package io.statecast.spark.state;

import java.time.Duration;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Joins the rows that two tables have under one key, and reports each change of either: keeps the last row of both sides.
 *
 * <p>A key is in one of two places: `rows` while a side has a row of it, `gone` for a while after. A side without a row
 * keeps its place as long as the key is there, so that an older record that comes again is recognized.
 */
public final class TableJoin extends StatefulProcessor<UTF8String, InternalRow, InternalRow> {
  private static final long serialVersionUID = 1L;

  /** A side of a state is (epoch, sequence, payload, time), the source's first; the last reported sequence follows. */
  private static final int SIDE_FIELDS = 4;

  private static final int PAYLOAD = 2;
  private static final int TIME = 3;
  private static final int REPORTED = 2 * SIDE_FIELDS;

  private final StructType state =
      new StructType()
          .add("source_epoch", "bigint", false)
          .add("source_sequence", "bigint", false)
          .add("source_row", "binary", true)
          .add("source_time", "bigint", true)
          .add("joined_epoch", "bigint", false)
          .add("joined_sequence", "bigint", false)
          .add("joined_row", "binary", true)
          .add("joined_time", "bigint", true)
          // The name stays as it is in the states of older releases.
          .add("told", "bigint", false);
  private final RowReader stored = new RowReader(state);
  private final RowReader input;
  private final int side;
  private final int epoch;
  private final int sequence;
  private final int payload;
  private final int time;
  private final int source;
  private final int committed;
  private final int letter;
  private final Duration forget;
  private final boolean[] alone;
  private transient ValueState<InternalRow> rows;
  private transient ValueState<InternalRow> gone;

  TableJoin(StructType input, Duration forget, boolean sourceAlone, boolean joinedAlone) {
    this.input = new RowReader(input);
    this.side = input.fieldIndex("side");
    this.epoch = input.fieldIndex("epoch");
    this.sequence = input.fieldIndex("sequence");
    this.payload = input.fieldIndex("payload");
    this.time = input.fieldIndex("time");
    this.source = input.fieldIndex("source");
    this.committed = input.fieldIndex("committed");
    this.letter = input.fieldIndex(LetterKeys.COLUMN);
    this.forget = forget;
    this.alone = new boolean[] {sourceAlone, joinedAlone};
  }

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
    TableJoin processor =
        new TableJoin(input, Duration.ofSeconds(forgetSeconds), sourceAlone, joinedAlone);
    return InternalState.results(lines, "key", processor, new WithoutTimers(), output);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    rows = getHandle().getValueState("rows", InternalState.rows(state), TTLConfig.NONE());
    gone = getHandle().getValueState("gone", InternalState.rows(state), new TTLConfig(forget));
  }

  @Override
  public Iterator<InternalRow> handleInputRows(UTF8String key, Iterator<InternalRow> lines, TimerValues timers) {
    if (LetterKeys.isOne(key)) {
      return lines.map(line -> result(key, null, 0L, null, null, null, null, input.value(line, letter)));
    }
    InternalRow live = rows.get();
    InternalRow known = live == null ? gone.get() : live;
    Object[] now = known == null ? nothing() : stored.values(known);
    boolean stood = stands(now);
    InternalRow[] applied = new InternalRow[2];
    Outcomes outcomes = new Outcomes();
    while (lines.hasNext()) {
      InternalRow line = lines.next().copy();
      int at = line.getInt(side);
      boolean newer = isNewer(line, now, at * SIDE_FIELDS);
      count(line, now, at * SIDE_FIELDS, newer, outcomes);
      if (newer) {
        put(line, now, at * SIDE_FIELDS);
        applied[at] = line;
      }
    }
    if (applied[0] == null && applied[1] == null) {
      return CollectionConverters.asScala(List.of(counting(key, outcomes)).iterator());
    }
    boolean tells = stood || stands(now);
    if (tells) {
      now[REPORTED] = Math.max((Long) now[REPORTED] + 1, timers.getCurrentProcessingTimeInMs());
    }
    remember(now, live != null, known != null);
    InternalRow output = tells ? line(key, now, last(applied), outcomes) : counting(key, outcomes);
    return CollectionConverters.asScala(List.of(output).iterator());
  }

  /** Returns the state of an unknown key: any place is higher. */
  private static Object[] nothing() {
    return new Object[] {
      Long.MIN_VALUE, Long.MIN_VALUE, null, null, Long.MIN_VALUE, Long.MIN_VALUE, null, null, 0L
    };
  }

  private boolean isNewer(InternalRow line, Object[] now, int at) {
    int byEpoch = Long.compare(line.getLong(epoch), (Long) now[at]);
    return byEpoch > 0 || (byEpoch == 0 && line.getLong(sequence) > (Long) now[at + 1]);
  }

  private void count(InternalRow line, Object[] now, int at, boolean newer, Outcomes outcomes) {
    if (newer) {
      outcomes.applied(now[at + PAYLOAD] != null || !line.isNullAt(payload));
    } else {
      boolean same = now[at].equals(line.getLong(epoch)) && now[at + 1].equals(line.getLong(sequence));
      outcomes.passed(same, RowPosition.isNewer(timeOf(line), (Long) now[at + TIME]));
    }
  }

  private void put(InternalRow line, Object[] now, int at) {
    now[at] = line.getLong(epoch);
    now[at + 1] = line.getLong(sequence);
    now[at + PAYLOAD] = line.getBinary(payload);
    now[at + TIME] = timeOf(line);
  }

  private Long timeOf(InternalRow line) {
    return (Long) input.value(line, time);
  }

  private static boolean has(Object[] now, int side) {
    return now[side * SIDE_FIELDS + PAYLOAD] != null;
  }

  /** Returns whether the key has a joined row. */
  private boolean stands(Object[] now) {
    return (has(now, 0) && has(now, 1)) || (has(now, 0) && alone[0]) || (has(now, 1) && alone[1]);
  }

  /** Returns the later committed one of the two sides' newest changes. */
  private InternalRow last(InternalRow[] applied) {
    if (applied[0] == null || applied[1] == null) {
      return applied[0] == null ? applied[1] : applied[0];
    }
    return commit(applied[1]) > commit(applied[0]) ? applied[1] : applied[0];
  }

  private long commit(InternalRow line) {
    return line.isNullAt(committed) ? Long.MIN_VALUE : line.getLong(committed);
  }

  private void remember(Object[] now, boolean wasLive, boolean wasKnown) {
    boolean lives = has(now, 0) || has(now, 1);
    (lives ? rows : gone).update(new GenericInternalRow(now));
    if (!lives && wasLive) {
      rows.clear();
    }
    if (lives && wasKnown && !wasLive) {
      gone.clear();
    }
  }

  /** Returns a line with the outcomes alone. */
  private static InternalRow counting(UTF8String key, Outcomes outcomes) {
    return result(key, null, 0L, null, null, null, outcomes.row(), null);
  }

  private InternalRow line(UTF8String key, Object[] now, InternalRow change, Outcomes outcomes) {
    boolean stands = stands(now);
    Object sourceRow = stands ? now[PAYLOAD] : null;
    Object joinedRow = stands ? now[SIDE_FIELDS + PAYLOAD] : null;
    return result(key, !stands, now[REPORTED], sourceRow, joinedRow, change.getBinary(source), outcomes.row(), null);
  }

  private static InternalRow result(Object... columns) {
    return new GenericInternalRow(columns);
  }
}
