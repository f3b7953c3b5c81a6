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
 * Computes a row's contribution to each of its groups: `contributions(units) → array of struct(key, rows, parts…)`.
 *
 * <p>A unit is struct(key, values…), with the text of a group and a value per part; one with a null key counts nowhere.
 * Units with the same key are added up.
 */
public final class Contributions implements Serializable {
  private static final long serialVersionUID = 1L;

  private final GroupPart[] parts;
  private final RowReader unit;
  private final int width;

  public Contributions(GroupPart[] parts, StructType unit) {
    this.parts = parts;
    this.unit = new RowReader(unit);
    this.width = unit.size();
  }

  /** Called by Spark's generated code. */
  public ArrayData call(ArrayData units) {
    Map<UTF8String, List<InternalRow>> byKey = new LinkedHashMap<>();
    for (int i = 0; i < units.numElements(); i++) {
      InternalRow each = units.getStruct(i, width);
      if (!each.isNullAt(0)) {
        byKey.computeIfAbsent(each.getUTF8String(0), key -> new ArrayList<>(1)).add(each);
      }
    }
    List<Object> entries = new ArrayList<>(byKey.size());
    byKey.forEach((key, own) -> entries.add(entry(key, own)));
    return new GenericArrayData(entries.toArray());
  }

  private InternalRow entry(UTF8String key, List<InternalRow> units) {
    Object[] values = new Object[parts.length + 2];
    values[0] = key;
    values[1] = (long) units.size();
    for (int i = 0; i < parts.length; i++) {
      values[i + 2] = parts[i].contributed(values(units, i + 1));
    }
    return new GenericInternalRow(values);
  }

  private Object[] values(List<InternalRow> units, int field) {
    Object[] values = new Object[units.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = unit.value(units.get(i), field);
    }
    return values;
  }
}
