package io.statecast.spark;

import org.apache.spark.sql.Row;

/** Copies rows, which cannot be changed. */
final class RowValues {
  private RowValues() {}

  /** The row's values, and behind them as many nulls as are asked for. */
  static Object[] of(Row row, int more) {
    Object[] values = new Object[row.size() + more];
    for (int i = 0; i < row.size(); i++) {
      values[i] = row.get(i);
    }
    return values;
  }
}
