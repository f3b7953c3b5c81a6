package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** The result of decoding, struct(row, payload, problem), as Spark's internal row. */
final class Decoded {
  private Decoded() {}

  /** Of a record that can be read. */
  static InternalRow row(InternalRow row, byte[] payload) {
    return new GenericInternalRow(new Object[] {row, payload, null});
  }

  /** Of one that cannot, for this reason. */
  static InternalRow problem(String reason) {
    return new GenericInternalRow(new Object[] {null, null, UTF8String.fromString(reason)});
  }
}
