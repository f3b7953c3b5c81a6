package io.statecast.spark.decode;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes a message that is not a change, such as the row of a table: `decode_row(bytes) → struct(row, payload,
 * problem)`. `row` or `problem` is null; `payload` has the bytes of a message that can be read. Null bytes give null.
 */
public class DecodeRow implements Serializable {
  private static final long serialVersionUID = 1L;

  final MessageType type;

  public DecodeRow(MessageType type) {
    this.type = type;
  }

  /** Called by Spark's generated code. */
  public final InternalRow call(byte[] value) {
    try {
      return decoded(MessageReader.of(type.descriptor()).read(value), payload(value));
    } catch (IOException | UndecodableException e) {
      return problem("not a %s: %s".formatted(type, e.getMessage()));
    }
  }

  /** Returns the result for a record that can be read. */
  static InternalRow decoded(InternalRow row, byte[] payload) {
    return new GenericInternalRow(new Object[] {row, payload, null});
  }

  /** Returns the result for a record that cannot be read, with the reason. */
  static InternalRow problem(String reason) {
    return new GenericInternalRow(new Object[] {null, null, UTF8String.fromString(reason)});
  }

  /** Returns the bytes of the row in a message that can be read; null if it has none. */
  byte[] payload(byte[] value) throws IOException {
    return value;
  }
}
