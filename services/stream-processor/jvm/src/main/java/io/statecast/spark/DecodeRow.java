package io.statecast.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * `decode_row(bytes) → struct(row, payload, problem)`: a message that is no change, such as the row of a table. `row` or
 * `problem` is null; `payload` is the bytes of a message that can be read. Null bytes give null.
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
