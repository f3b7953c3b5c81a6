package io.statecast.spark.state;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A row in the state: its place and its entries, none when it is gone. */
record Remembered(RowPosition place, ArrayData entries) {
  static final ArrayData NOTHING = new GenericArrayData(new Object[0]);

  /** The type of a stored row without entries. */
  static final StructType PLACE =
      new StructType()
          .add("epoch", "bigint", false)
          .add("sequence", "bigint", false)
          .add("written", "bigint", false)
          .add("time", "bigint", true);

  private static final int ENTRIES = 4;

  /** Returns the type of a stored row with entries of this type. */
  static StructType withEntries(DataType entries) {
    return PLACE.add("current", entries, false);
  }

  /** Reads a stored row; null gives null. */
  static Remembered in(InternalRow stored) {
    if (stored == null) {
      return null;
    }
    return new Remembered(RowPosition.in(stored), stored.numFields() > ENTRIES ? stored.getArray(ENTRIES) : NOTHING);
  }

  /** Returns a row that is gone, with the place of its last change. */
  static Remembered gone(RowPosition place) {
    return new Remembered(place, NOTHING);
  }

  boolean isGone() {
    return entries.numElements() == 0;
  }

  /** Returns the row to store, with its entries unless it is gone. */
  InternalRow stored() {
    return isGone()
        ? new GenericInternalRow(new Object[] {place.epoch(), place.sequence(), place.written(), place.time()})
        : new GenericInternalRow(new Object[] {place.epoch(), place.sequence(), place.written(), place.time(), entries});
  }
}
