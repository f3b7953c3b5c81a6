package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** Makes the result of decoding, struct(row, payload, problem), as Spark's internal row. */
final class Decoded {
  private Decoded() {}

  /** Returns the result for a record that can be read. */
  static InternalRow row(InternalRow row, byte[] payload) {
    return new GenericInternalRow(new Object[] {row, payload, null});
  }

  /** Returns the result for a record that cannot be read, with the reason. */
  static InternalRow problem(String reason) {
    return new GenericInternalRow(new Object[] {null, null, UTF8String.fromString(reason)});
  }
}
