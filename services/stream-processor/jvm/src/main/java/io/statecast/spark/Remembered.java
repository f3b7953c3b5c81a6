package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A row as the state remembers it: its place, and the entries that it has; none when it is gone. */
record Remembered(RowPosition place, ArrayData entries) {
  static final ArrayData NOTHING = new GenericArrayData(new Object[0]);

  /** The type of what is stored of a row without entries. */
  static final StructType PLACE =
      new StructType()
          .add("epoch", "bigint", false)
          .add("sequence", "bigint", false)
          .add("written", "bigint", false)
          .add("time", "bigint", true);

  private static final int ENTRIES = 4;

  /** The type of what is stored of a row with entries of this type. */
  static StructType withEntries(DataType entries) {
    return PLACE.add("current", entries, false);
  }

  /** What is stored; null for null. */
  static Remembered in(InternalRow stored) {
    if (stored == null) {
      return null;
    }
    return new Remembered(RowPosition.in(stored), stored.numFields() > ENTRIES ? stored.getArray(ENTRIES) : NOTHING);
  }

  /** A row that is gone, and was last changed there. */
  static Remembered gone(RowPosition place) {
    return new Remembered(place, NOTHING);
  }

  boolean isGone() {
    return entries.numElements() == 0;
  }

  /** What to store of a row that has entries, or is gone. */
  InternalRow stored() {
    return isGone()
        ? new GenericInternalRow(new Object[] {place.epoch(), place.sequence(), place.written(), place.time()})
        : new GenericInternalRow(new Object[] {place.epoch(), place.sequence(), place.written(), place.time(), entries});
  }
}
