package io.statecast.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Decodes a message that is not a change, such as the row of a table: `decode_row(bytes) → struct(row, payload,
 * problem)`. `row` or `problem` is null; `payload` has the bytes of a message that can be read. Null bytes give null.
 */
public class DecodeRow implements Serializable {
  private static final long serialVersionUID = 1L;

  final MessageType type;

  DecodeRow(MessageType type) {
    this.type = type;
  }

  /** Called by Spark's generated code. */
  public final InternalRow call(byte[] value) {
    try {
      return Decoded.row(MessageReader.of(type.descriptor()).read(value), payload(value));
    } catch (IOException | UndecodableException e) {
      return Decoded.problem("not a %s: %s".formatted(type, e.getMessage()));
    }
  }

  /** Returns the bytes of the row in a message that can be read; null if it has none. */
  byte[] payload(byte[] value) throws IOException {
    return value;
  }
}
