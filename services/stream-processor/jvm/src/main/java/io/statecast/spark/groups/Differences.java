package io.statecast.spark.groups;

import io.statecast.spark.state.RowReader;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Computes the differences that a change makes to groups: `differences(left, entered, stated, applied, complete) →
 * array of lines`.
 *
 * <p>The first three are arrays of entries, struct(key, rows, parts…), with each key once. A line is struct(key, rows,
 * parts…, ticks). With {@link Lines#EVERY}, it has `stood` and `stands` instead of ticks: whether the row was in the
 * group, and whether it is.
 */
public final class Differences implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Selects the lines of the result, and the meaning of `ticks`. */
  public enum Lines {
    /** One line per group that the row was in or is in, changed or not. */
    EVERY,
    /** One line per group that the change makes a difference to, with one tick. */
    CHANGED,
    /**
     * Also one line per group that the change states a difference to by itself, `entered` minus `stated`: that has the
     * tick. If the change is not `complete`, all lines have one.
     */
    STATED,
    /** The lines of STATED, with as many ticks as the change states by itself, minus the rows that enter the group. */
    TRUNCATED
  }

  private final GroupPart[] parts;
  private final StructType entry;
  private final Lines lines;
  private final RowReader values;

  public Differences(GroupPart[] parts, StructType entry, Lines lines) {
    this.parts = parts;
    this.entry = entry;
    this.values = new RowReader(entry);
    this.lines = lines;
  }

  /** Returns the type of a line. */
  public StructType result() {
    StructType result = new StructType().add("key", "string", false).add("rows", "bigint", false);
    for (int i = 0; i < parts.length; i++) {
      result = result.add(entry.apply(i + 2).name(), parts[i].difference, true);
    }
    return lines == Lines.EVERY
        ? result.add("stood", "boolean", false).add("stands", "boolean", false)
        : result.add("ticks", "bigint", false);
  }

  /** Called by Spark's generated code. */
  public ArrayData call(ArrayData left, ArrayData entered, ArrayData stated, boolean applied, boolean complete) {
    Map<UTF8String, InternalRow[]> groups = byKey(left, entered, stated);
    List<Object> result = new ArrayList<>(groups.size());
    for (Map.Entry<UTF8String, InternalRow[]> group : groups.entrySet()) {
      UTF8String key = group.getKey();
      InternalRow before = group.getValue()[0];
      InternalRow now = group.getValue()[1];
      InternalRow claim = group.getValue()[2];
      boolean effective = applied && (lines == Lines.EVERY || !same(before, now));
      boolean claimed = lines == Lines.CHANGED ? effective : lines != Lines.EVERY && !same(claim, now);
      if (!effective && !claimed) {
        continue;
      }
      Object[] line = effective ? difference(key, before, now) : onlyClaimed(key);
      int behind = parts.length + 2;
      if (lines == Lines.EVERY) {
        line[behind] = before != null;
        line[behind + 1] = now != null;
      } else if (lines == Lines.TRUNCATED) {
        line[behind] = (claimed || now != null ? rows(now) + 1 : 0) - (Long) line[1];
      } else {
        line[behind] = claimed || !complete ? 1L : 0L;
      }
      result.add(new GenericInternalRow(line));
    }
    return new GenericArrayData(result.toArray());
  }

  /** Returns the line of a change without effect. */
  private Object[] onlyClaimed(UTF8String key) {
    Object[] line = new Object[parts.length + (lines == Lines.EVERY ? 4 : 3)];
    line[0] = key;
    line[1] = 0L;
    return line;
  }

  /** Returns the line with the difference between two entries of a group; null stands for a missing entry. */
  private Object[] difference(UTF8String key, InternalRow before, InternalRow now) {
    Object[] line = onlyClaimed(key);
    line[1] = rows(now) - rows(before);
    for (int i = 0; i < parts.length; i++) {
      line[i + 2] = parts[i].difference(value(before, i), value(now, i));
    }
    return line;
  }

  private Object value(InternalRow entry, int part) {
    return entry == null ? null : values.value(entry, part + 2);
  }

  private static long rows(InternalRow entry) {
    return entry == null ? 0 : entry.getLong(1);
  }

  private boolean same(InternalRow one, InternalRow other) {
    if (one == null || other == null) {
      return one == other;
    }
    boolean same = rows(one) == rows(other);
    for (int i = 0; same && i < parts.length; i++) {
      same = parts[i].same(value(one, i), value(other, i));
    }
    return same;
  }

  /** Returns the entries of each key: one of each array, or null. */
  private Map<UTF8String, InternalRow[]> byKey(ArrayData... arrays) {
    Map<UTF8String, InternalRow[]> byKey = new LinkedHashMap<>();
    for (int array = 0; array < arrays.length; array++) {
      for (int i = 0; i < arrays[array].numElements(); i++) {
        InternalRow each = arrays[array].getStruct(i, entry.size());
        byKey.computeIfAbsent(each.getUTF8String(0), key -> new InternalRow[arrays.length])[array] = each;
      }
    }
    return byKey;
  }
}
