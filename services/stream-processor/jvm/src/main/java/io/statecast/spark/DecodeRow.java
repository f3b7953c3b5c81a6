package io.statecast.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * `decode_row(bytes, message, descriptors) → struct(row, payload, problem)`: a message that is no change, such as the row
 * of a table. `row` or `problem` is null; `payload` is the bytes of a message that can be read. Null bytes give null.
 */
public final class DecodeRow implements Serializable {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  /** Called by Spark's generated code. */
  public InternalRow call(byte[] value, UTF8String message, byte[] descriptors) {
    try {
      return Decoded.row(MessageReader.of(type.resolve(message, descriptors)).read(value), value);
    } catch (IOException | UndecodableException e) {
      return Decoded.problem("not a %s: %s".formatted(message, e.getMessage()));
    }
  }
}
