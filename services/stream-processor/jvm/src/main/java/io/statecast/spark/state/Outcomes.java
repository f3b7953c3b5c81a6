package io.statecast.spark.state;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/** Counts the outcomes of the changes of a key that came together, each once. */
final class Outcomes {
  /** The column of the counts; null on a line that counts none. */
  static final String COLUMN = "outcomes";

  static final StructType TYPE =
      new StructType()
          .add("applied", "int", false)
          .add("filtered", "int", false)
          .add("duplicate", "int", false)
          .add("superseded", "int", false)
          .add("superseded_newer", "int", false);

  private static final int APPLIED = 0;
  private static final int FILTERED = 1;
  private static final int DUPLICATE = 2;
  private static final int SUPERSEDED = 3;
  private static final int SUPERSEDED_NEWER = 4;

  private final int[] counts = new int[TYPE.size()];
  private boolean any;

  /** Counts a change that is newer; `effective` says whether its row belongs anywhere before or after it. */
  void applied(boolean effective) {
    add(effective ? APPLIED : FILTERED);
  }

  /**
   * Counts a change that is not newer.
   *
   * @param same whether it repeats the last one
   * @param newer whether it is newer by its time
   */
  void passed(boolean same, boolean newer) {
    add(same ? DUPLICATE : newer ? SUPERSEDED_NEWER : SUPERSEDED);
  }

  private void add(int outcome) {
    counts[outcome]++;
    any = true;
  }

  boolean any() {
    return any;
  }

  /** Returns the counts as a row of TYPE. */
  InternalRow row() {
    return new GenericInternalRow(new Object[] {counts[0], counts[1], counts[2], counts[3], counts[4]});
  }
}
