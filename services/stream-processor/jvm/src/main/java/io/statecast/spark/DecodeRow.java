package io.statecast.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Decodes a message that is not a change, such as the row of a table: `decode_row(bytes) → struct(row, payload,
 * problem)`. `row` or `problem` is null; `payload` has the bytes of a message that can be read. Null bytes give null.
 */
public final class DecodeRow implements Serializable {
  private static final long serialVersionUID = 1L;

  private final MessageType type;

  DecodeRow(MessageType type) {
    this.type = type;
  }

  /** Called by Spark's generated code. */
  public InternalRow call(byte[] value) {
    try {
      return Decoded.row(MessageReader.of(type.descriptor()).read(value), value);
    } catch (IOException | UndecodableException e) {
      return Decoded.problem("not a %s: %s".formatted(type, e.getMessage()));
    }
  }
}
